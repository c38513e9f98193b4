"""The losses of Liger-Kernel, as `liger_cases.py` has its other operations."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from tests.device.liger_cases import Case, Draw, fn


def vocabulary(odd: bool) -> int:
    return 1003 if odd else 4096


def entropy_plain(
    x: Any, y: Any, smoothing: float = 0.0, z: float = 0.0, cap: float | None = None, w: Any = None
) -> Any:
    """The mean cross entropy of what is not ignored, with the square of the logarithm of the sum beside it."""
    x = cap * torch.tanh(x / cap) if cap else x
    kept = y != -100
    loss = F.cross_entropy(x, y, weight=w, label_smoothing=smoothing)
    return loss + z * (torch.logsumexp(x, -1)[kept].square().sum() / kept.sum()) if z else loss


def cross_entropy(**options: Any) -> Callable[..., Case]:
    def case(draw: Draw, odd: bool) -> Case:
        v = vocabulary(odd)
        names = {"label_smoothing": "smoothing", "lse_square_scale": "z", "softcap": "cap"}
        return Case(
            {"x": draw(37, v), "y": draw.labels(37, v, ignored=True)},
            lambda x, y: fn().liger_cross_entropy(x.clone(), y, **options),
            lambda x, y: entropy_plain(x, y, **{names[name]: value for name, value in options.items()}),
        )

    return case


def weighted_cross_entropy(draw: Draw, odd: bool) -> Case:
    v = vocabulary(odd)
    weights = torch.rand(v, generator=draw.generator) + 0.5
    return Case(
        {"x": draw(37, v), "y": draw.labels(37, v, ignored=True), "w": weights},
        lambda x, y, w: fn().liger_cross_entropy(x.clone(), y, w),
        lambda x, y, w: entropy_plain(x, y, w=w),
    )


def fused_linear_cross_entropy(draw: Draw, odd: bool) -> Case:
    v, n = vocabulary(odd), 60 if odd else 128
    return Case(
        {
            "x": draw(37, n),
            "weight": draw(v, n, scale=0.1),
            "bias": draw(v, scale=0.1),
            "y": draw.labels(37, v, ignored=True),
        },
        lambda x, weight, bias, y: fn().liger_fused_linear_cross_entropy(
            x, weight, y, bias, label_smoothing=0.1, accum_dtype=torch.float32
        ),
        lambda x, weight, bias, y: entropy_plain(x @ weight.T + bias, y, smoothing=0.1),
    )


def vocab_parallel_cross_entropy(draw: Draw, odd: bool) -> Case:
    v = vocabulary(odd)

    def liger(x: Any, y: Any) -> Any:
        from liger_kernel.ops import LigerVocabParallelCEFunction

        return LigerVocabParallelCEFunction.apply(x, y.view(-1, 1), None, -100, 0.0, "torch", "mean")

    def plain(x: Any, y: Any) -> Any:
        return F.cross_entropy(x[:, 0], y, reduction="none")[:, None]

    return Case({"x": draw(37, 1, v), "y": draw.labels(37, v, ignored=True)}, liger, plain)


def fused_ce_tvd(draw: Draw, odd: bool) -> Case:
    v = vocabulary(odd)

    def liger(x: Any, teacher: Any, y: Any) -> Any:
        from liger_kernel.ops.fused_ce_tvd import LigerFusedCETVDFunction

        return LigerFusedCETVDFunction.apply(x, teacher, y, -100)

    def plain(x: Any, teacher: Any, y: Any) -> Any:
        away = 0.5 * (torch.softmax(x, -1) - torch.softmax(teacher, -1)).abs().sum(-1)
        return F.cross_entropy(x, y, reduction="none"), away * (y != -100)

    teacher = draw(37, v).detach()
    return Case({"x": draw(37, v), "teacher": teacher, "y": draw.labels(37, v, ignored=True)}, liger, plain)


def divergence(x: Any, y: Any, beta: float) -> Any:
    """The generalised Jensen-Shannon divergence of two logarithms of probabilities, in each element."""
    p, q = y.exp(), x.exp()
    if beta == 0:
        return p * (y - x)
    if beta == 1:
        return q * (x - y)
    middle = torch.log(beta * p + (1 - beta) * q)
    return beta * p * (y - middle) + (1 - beta) * q * (x - middle)


def jsd(beta: float) -> Callable[..., Case]:
    def case(draw: Draw, odd: bool) -> Case:
        v = vocabulary(odd)

        def plain(x: Any, y: Any, labels: Any) -> Any:
            kept = labels != -100
            return (divergence(x, y, beta) * kept[:, None]).sum() / kept.sum()

        return Case(
            {"x": draw.logs(37, v), "y": draw.logs(37, v).detach(), "labels": draw.labels(37, v, ignored=True)},
            lambda x, y, labels: fn().liger_jsd(x, y, labels, beta),
            plain,
        )

    return case


def fused_linear_jsd(draw: Draw, odd: bool) -> Case:
    v, n = vocabulary(odd), 60 if odd else 128
    student, teacher = draw(37, n), draw(37, 2 * n).detach()

    def plain(x: Any, w: Any, tx: Any, tw: Any, labels: Any) -> Any:
        kept = labels != -100
        logs = [torch.log_softmax(a @ b.T / 2.0, -1) for a, b in ((x, w), (tx, tw))]
        return (divergence(*logs, beta=0.3) * kept[:, None]).sum() / kept.sum()

    return Case(
        {
            "x": student,
            "w": draw(v, n, scale=0.1),
            "tx": teacher,
            "tw": draw(v, 2 * n, scale=0.1).detach(),
            "labels": draw.labels(37, v, ignored=True),
        },
        lambda x, w, tx, tw, labels: fn().liger_fused_linear_jsd(
            x, w, tx, tw, labels, 0.3, temperature=2.0, accum_dtype=torch.float32
        ),
        plain,
    )


def kl_div(reduction: str, in_logs: bool) -> Callable[..., Case]:
    def case(draw: Draw, odd: bool) -> Case:
        v = vocabulary(odd)
        target = draw.logs(37, v) if in_logs else draw.chances(37, v)
        return Case(
            {"x": draw.logs(37, v), "target": target.detach()},
            lambda x, target: fn().liger_kl_div(x, target, reduction=reduction, log_target=in_logs),
            lambda x, target: F.kl_div(x, target, reduction=reduction, log_target=in_logs),
        )

    return case


def fused_linear_kl_div(draw: Draw, odd: bool) -> Case:
    v, n = vocabulary(odd), 60 if odd else 128

    def plain(x: Any, w: Any, target: Any, labels: Any) -> Any:
        kept = labels != -100
        each = F.kl_div(torch.log_softmax(x @ w.T / 2.0, -1), target, reduction="none")
        return (each * kept[:, None]).sum() / kept.sum()

    return Case(
        {
            "x": draw(37, n),
            "w": draw(v, n, scale=0.1),
            "target": draw.chances(37, v).detach(),
            "labels": draw.labels(37, v, ignored=True),
        },
        lambda x, w, target, labels: fn().liger_fused_linear_kl_div(
            x, w, target, labels, temperature=2.0, accum_dtype=torch.float32
        ),
        plain,
    )


def tvd(reduction: str) -> Callable[..., Case]:
    def case(draw: Draw, odd: bool) -> Case:
        v = vocabulary(odd)

        def plain(x: Any, y: Any, labels: Any) -> Any:
            kept = labels != -100
            each = 0.5 * (x - y).abs() * kept[:, None]
            divisors = {"batchmean": kept.sum(), "mean": kept.sum() * v}
            return each if reduction == "none" else each.sum() / divisors[reduction]

        return Case(
            {"x": draw.chances(37, v), "y": draw.chances(37, v).detach(), "labels": draw.labels(37, v, ignored=True)},
            lambda x, y, labels: fn().liger_tvd(x, y, labels, reduction),
            plain,
        )

    return case


def grpo(kind: str, level: str = "token") -> Callable[..., Case]:
    """The loss of group relative policy optimisation, with a penalty for leaving the reference."""

    def case(draw: Draw, odd: bool) -> Case:
        v, length = vocabulary(odd), 11
        single = torch.float32
        words = draw.labels(3 * length, v).view(3, length)
        mask = (torch.arange(length) < torch.tensor([[11], [7], [4]])).to(torch.int32)

        def liger(x: Any, old: Any, ref: Any, gain: Any, words: Any, mask: Any) -> Any:
            from liger_kernel.transformers.grpo_loss import triton_grpo_loss

            loss, kl, clipped = triton_grpo_loss(
                x.clone(), old, ref, words, gain, mask, loss_type=kind, importance_sampling_level=level, inplace=False
            )
            return loss, kl.detach(), clipped.detach()

        def plain(x: Any, old: Any, ref: Any, gain: Any, words: Any, mask: Any) -> Any:
            log = torch.log_softmax(x[:, :-1] / 0.9, -1).gather(-1, words[..., None])[..., 0]
            change = log - old
            if level == "sequence":
                change = ((change * mask).sum(-1) / mask.sum(-1))[:, None].expand_as(log)
            ratio, gain = change.exp(), gain[:, None]
            kl = (ref - log).exp() - (ref - log) - 1
            clipped = ((ratio < 0.8) & (gain < 0)) | ((ratio > 1.4) & (gain > 0))
            if kind == "cispo":
                loss = -ratio.detach().clamp(max=0.4) * gain * log
                clipped = (ratio > 0.4) & (gain > 0)  # of this kind the bound itself, not its distance from 1
            elif kind == "sapo":
                heat = torch.where(gain > 0, 1.0, 1.05)
                loss = -torch.sigmoid(heat * (ratio - 1)) * 4 / heat * gain
                clipped = torch.zeros_like(clipped)
            else:
                loss = -torch.minimum(ratio * gain, ratio.clamp(0.8, 1.4) * gain)
            return (loss + 0.04 * kl) * mask, (kl * mask).detach(), clipped * mask

        return Case(
            {
                "x": draw(3, length + 1, v),
                "old": draw(3, length, dtype=single, scale=0.3, shift=-7.0).detach(),
                "ref": draw(3, length, dtype=single, scale=0.3, shift=-7.0).detach(),
                "gain": draw(3, dtype=single).detach(),
                "words": words,
                "mask": mask,
            },
            liger,
            plain,
        )

    return case
