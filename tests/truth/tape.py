"""Numbers that remember how they were made: a scalar tape over mpmath, for gradients without formulas.

A Var holds a value and (parent, partial derivative) pairs; `backward` walks all Vars in reverse order of
creation.  `g` stays the Python int 0 until something reaches it, so a gradient that is 0 by definition can
be told from one that is computed.  Constants are plain mpf numbers.
"""
import mpmath

from case import BadCase, _finite, real

_order = []


def restart():
    del _order[:]


class Var:
    __slots__ = ("v", "parents", "g", "hook")

    def __init__(self, v, parents=(), hook=None):
        self.v, self.parents, self.g, self.hook = v, parents, 0, hook
        _order.append(self)

    def __add__(self, other):
        if isinstance(other, Var):
            return Var(self.v + other.v, ((self, 1), (other, 1)))
        return Var(self.v + other, ((self, 1),))

    __radd__ = __add__

    def __neg__(self):
        return Var(-self.v, ((self, -1),))

    def __sub__(self, other):
        return self + (-other)

    def __rsub__(self, other):
        return (-self) + other

    def __mul__(self, other):
        if isinstance(other, Var):
            return Var(self.v * other.v, ((self, other.v), (other, self.v)))
        return Var(self.v * other, ((self, other),))

    __rmul__ = __mul__

    def __truediv__(self, other):
        return self * inverse(other)

    def __rtruediv__(self, other):
        return other * inverse(self)


def value(x):
    return x.v if isinstance(x, Var) else x


def _unary(x, f, slope):
    if not isinstance(x, Var):
        return f(x)
    y = f(x.v)
    return Var(y, ((x, slope(x.v, y)),))


def inverse(x):
    return _unary(x, lambda a: 1 / a, lambda a, y: -y * y)


def exp(x):
    return _unary(x, mpmath.exp, lambda a, y: y)


def log(x):
    return _unary(x, mpmath.log, lambda a, y: 1 / a)


def rsqrt(x):
    return _unary(x, lambda a: 1 / mpmath.sqrt(a), lambda a, y: -y / (2 * a))


def relu(x):
    """0 and its derivative 0 at 0 and below."""
    if not isinstance(x, Var):
        return x if x > 0 else mpmath.mpf(0)
    return Var(x.v, ((x, 1),)) if x.v > 0 else Var(mpmath.mpf(0))


def dot(a, b):
    """Sum of a_i * b_i (the empty sum is a constant 0)."""
    total, parents = mpmath.mpf(0), []
    for x, y in zip(a, b):
        xv, yv = value(x), value(y)
        total += xv * yv
        if isinstance(x, Var):
            parents.append((x, yv))
        if isinstance(y, Var):
            parents.append((y, xv))
    return Var(total, tuple(parents)) if parents else total


def add_all(a):
    total, parents = mpmath.mpf(0), []
    for x in a:
        total += value(x)
        if isinstance(x, Var):
            parents.append((x, 1))
    return Var(total, tuple(parents)) if parents else total


def seed(x, cotangent):
    """Add a cotangent to x, if anything depends on it."""
    if isinstance(x, Var):
        x.g = x.g + cotangent


def backward():
    for x in reversed(_order):
        if x.hook is not None:
            x.hook()
        if isinstance(x.g, int) and x.g == 0:
            continue
        for parent, partial in x.parents:
            parent.g = parent.g + x.g * partial


class Leaves:
    """The inputs of a case as Vars, made when first read; reading a NaN or Inf is an error."""

    def __init__(self, case):
        self.case, self.made = case, {}

    def __call__(self, name, flat):
        table = self.made.setdefault(name, {})
        if flat not in table:
            x = self.case.value("in." + name)[flat]
            if not _finite(x):
                raise BadCase("in.%s[%d] is read and not finite" % (name, flat))
            table[flat] = Var(real(x))
        return table[flat]

    def row(self, name, begin, count, step=1):
        return [self(name, begin + n * step) for n in range(count)]

    def gradient(self, name):
        table = self.made.get(name, {})
        size = len(self.case.value("in." + name))
        return self.case.shape("in." + name), [table[i].g if i in table else 0 for i in range(size)]

    def gradients(self, names):
        return {"grad." + n: self.gradient(n) for n in names if self.case.has("in." + n)}


def constant(case, name, flat):
    """One element of a given.* or cot.* tensor that is read."""
    x = case.value(name)[flat]
    if not _finite(x):
        raise BadCase("%s[%d] is read and not finite" % (name, flat))
    return real(x)
