"""J_n and Y_n of order two and more next to zeros, where the leading bits of the recurrence cancel."""

import numpy as np
import pytest
from tilework.targets.llvm.math.bessel_zeros import close_to_zero

from tests.targets.llvm_run import elementwise, run, ulps
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.math.lanes import Lanes
from tilework.targets.llvm.types import f64, i32, i64
from tilework.targets.llvm.values import Value

# n, x and the value as high + low, computed in 300 bits; pairs are off by up to 258 units at the ones below 250
HARD = {
    "yn": [
        (5, 6.747183824871022, 1.4542514516100717e-18, 2.1959360310977397e-35),
        (9, 19.04794964636139, -1.1424319702307504e-17, 6.698871239325028e-34),
        (13, 67.06775336128588, 1.6823722404433868e-18, -2.90227358388409e-35),
        (15, 17.403763165970663, -1.0942667825522091e-17, -3.682743542486921e-34),
        (16, 18.451433996482454, -7.14706838073159e-18, 1.945679614486975e-34),
        (17, 28.553204294779082, 1.0362001043958843e-17, -3.697225621012936e-34),
        (21, 37.08080831254907, 2.0319459754141414e-19, -6.588556164409098e-36),
        (26, 28.848108405899364, -1.9532217026653066e-17, 5.8760447683672255e-34),
        (31, 34.00968133821454, 1.7653951938783405e-17, 1.1763146549205728e-33),
        (34, 59.98139125836554, -2.2202826446594675e-18, -2.2228576528726634e-35),
        (34, 67.41591775792921, -3.3622154224875793e-20, 9.31782222243487e-37),
        (38, 60.71093428194749, 2.1629949359455354e-18, 1.0041326511300823e-34),
        (40, 49.468819285734114, -6.595916494751698e-18, 2.382311039579885e-35),
        (40, 66.98661726200679, -1.3177235662512254e-17, -2.378727234802092e-34),
        (9, 1717.6422772420024, -1.732307294152805e-19, 8.486880080860783e-37),
        (4, 990.3791325372648, 3.44749350811166e-19, -1.1496041575587415e-35),
        (8, 1138.0139293355776, 1.4677146471305733e-18, -9.351006866648669e-35),
        (4, 10996.358969581532, -1.971567305618204e-19, -5.516075318498655e-36),
        (3, 13508.062688392072, 3.8576583974274093e-19, 2.2359554455309022e-35),
        (2, 2.927596759215223e+231, -4.765366688775771e-132, 2.396354188807903e-148),
        (3, 2.927596759215223e+231, -1.4746346437672674e-116, 1.4057732318539015e-132),
        (4, 2.6550857908629187e+271, -2.003057748369651e-152, -2.119346658787484e-168),
        (5, 2.6550857908629187e+271, 1.5484628207505754e-136, 4.858026842060465e-153),
    ],
    "jn": [
        (9, 17.24122038248913, 2.3107051460672696e-17, 2.3084305065410875e-34),
        (11, 214.1316871028367, -2.19959024908927e-19, 5.1826900555535e-36),
        (15, 28.10241523166776, 5.349374763566788e-17, -8.883335129367297e-34),
        (16, 111.15961586758681, 6.009282835846381e-19, 4.728641214099076e-35),
        (26, 189.06183408284696, -1.2118900498374904e-18, 2.784006164836058e-35),
        (27, 184.15722038902234, 6.544645543971576e-19, 3.821983216141502e-35),
        (31, 115.99973109615567, -2.956515747904314e-18, 9.562402065243379e-35),
        (34, 123.30305939895081, -2.2275694986710192e-18, 1.4636059748775933e-34),
        (34, 225.98894187011837, -2.2548228356873237e-19, 1.2076267913373136e-35),
        (2, 1199.301432097984, 2.30817985986023e-19, 1.2394737763312486e-35),
        (2, 1296.6909217809725, 3.859149761600486e-19, 2.1623120179885458e-35),
        (8, 6895.0058535544995, 3.820829215622179e-19, 1.086002715054953e-35),
        (6, 4155.5373810458805, -5.072536762881414e-19, 3.7562406403840136e-36),
        (10, 9188.367685527453, -3.7468143953852696e-19, -4.102529038227249e-36),
        (2, 2.927596759215223e+231, 1.4746346437672674e-116, -1.4057732318539015e-132),
        (3, 2.927596759215223e+231, -4.765366688775771e-132, 2.396354188807903e-148),
        (4, 2.6550857908629187e+271, -1.5484628207505754e-136, -4.858026842060465e-153),
        (5, 2.6550857908629187e+271, -2.003057748369651e-152, -2.119346658787484e-168),
    ],
}  # fmt: skip
# where one expansion follows another
CENTRE_EDGES = [side for edge in (4, 6, 8, 12, 16, 24, 32, 48, 64) for side in (np.nextafter(edge, 0), edge)]


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("width", [1, 2])
def test_next_to_a_zero_within_one_unit(name: str, width: int) -> None:
    n, x, high, low = (np.array(column) for column in zip(*HARD[name]))
    error = ulps(elementwise(name, [i32, f64], width)(n, x), high, low)
    worst = int(np.argmax(error))
    assert error[worst] < 1.0, f"{name}({n[worst]}, {x[worst]}) is off by {error[worst]} units"


@pytest.mark.parametrize("name", HARD)
def test_negative_orders_next_to_a_zero(name: str) -> None:
    n, x, high, low = (np.array(column) for column in zip(*HARD[name]))
    sign = np.where(n % 2, -1.0, 1.0)
    assert np.max(ulps(elementwise(name, [i32, f64])(-n, x), sign * high, sign * low)) < 1.0


@pytest.mark.parametrize("is_second", [False, True])
def test_fixed_point_agrees_with_pairs_away_from_zeros(is_second: bool) -> None:
    draw = np.random.default_rng(8)
    x = np.concatenate([draw.uniform(3, 64, 200), 10.0 ** draw.uniform(1.8, 300, 100), CENTRE_EDGES])
    n = np.minimum(draw.integers(2, 300, len(x)), x).astype(np.int64)
    got = np.zeros(len(x))

    def fill(b: Builder, orders: Value, indices: Value, results: Value) -> None:
        with b.loop(0, len(x), 1) as index:
            order, position, result = (b.gep(array, index, f64) for array in (orders, indices, results))
            argument = Lanes(b, b.load(f64, position, align=8))
            b.store(close_to_zero(b, is_second, b.load(i64, order, align=8), argument).v, result, align=8)

    run([n, x, got], fill)
    expected = elementwise("yn" if is_second else "jn", [i32, f64])(n, x)
    assert np.max(ulps(got, expected)) <= 1.0
