"""Training a small transformer: two layers, some steps, compiled and eager from the same start."""

import copy
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F


class Transformer(nn.Module):
    """Embedding, two layers of attention and feed-forward, and the scores of the next token."""

    def __init__(self, words: int = 50, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        made = [
            nn.TransformerEncoderLayer(width, heads, 2 * width, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(2)
        ]
        self.layers = nn.ModuleList(made)
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device)
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=True)
        return self.norm(x) @ self.embedding.weight.t()


def losses(model: Any, step_options: dict[str, Any], tokens: torch.Tensor, steps: int) -> list[float]:
    """The loss before each step of AdamW."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, eps=1e-3)  # what is zero but for rounding stays small
    update = torch.compile(optimizer.step, **step_options) if step_options else optimizer.step
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        scores = model(tokens[:, :-1])
        loss = F.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        update()
        found.append(loss.item())
    return found


def check(device: str, steps: int = 4, compile_step: bool = True, **options: Any) -> list[float]:
    """Train compiled and eager, and compare every loss and parameter."""
    torch._dynamo.reset()
    torch.manual_seed(5)
    model = Transformer().to(device)
    tokens = torch.randint(0, 50, (4, 17)).to(device)
    other = copy.deepcopy(model)
    expected = losses(model, {}, tokens, steps)
    found = losses(torch.compile(other, **options), {"fullgraph": False} if compile_step else {}, tokens, steps)
    torch.testing.assert_close(torch.tensor(found), torch.tensor(expected), rtol=1e-3, atol=1e-3)
    ours, theirs = (dict(one.named_parameters()) for one in (other, model))
    for name, parameter in theirs.items():
        torch.testing.assert_close(
            ours[name], parameter, rtol=2e-2, atol=2e-3, msg=lambda text, name=name: f"{name}: {text}"
        )
    assert found[-1] < 0.9 * found[0], found
    return found
