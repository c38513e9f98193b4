"""Constants and polynomials by type: one formula serves f32 and f64.

fma(n, -LN2[x.scalar][0], x)
"""

from tilework.targets.llvm.math import coefficients as c
from tilework.targets.llvm.types import f32, f64

LN2 = {f32: c.LN2_F, f64: c.LN2}
PI = {f32: c.PI_F, f64: c.PI}
HALF_PI = {f32: c.HALF_PI_F, f64: c.HALF_PI}
ROOT_HALF = {f32: c.ROOT_HALF_F, f64: c.ROOT_HALF}
TWO_THIRDS = {f32: c.TWO_THIRDS_F, f64: c.TWO_THIRDS}

EXP = {f32: c.EXPF[1:], f64: c.EXP}  # that of f32 begins with r^2, whose factor is 1/2 too
SINH = {f32: c.SINHF, f64: c.SINH}
LOG = {f32: c.ATANHF, f64: c.LOG}
SIN = {f32: c.SINF, f64: c.SIN}
COS = {f32: c.COSF, f64: c.COS}
ATAN = {f32: c.ATANF, f64: c.ATAN}
ASIN = {f32: c.ASINF, f64: c.ASIN}
