"""JAX's arrays go in and out with their dtypes. Run in an environment that has JAX."""
import jax.numpy as jnp
import numpy as np

import plumbline as pl

x = jnp.arange(24.0).reshape(3, 8) + 1
for dtype in (jnp.float32, jnp.bfloat16, jnp.float16):
    y = pl.evaluate("rms_norm", {"x": x.astype(dtype)})["y"].high
    assert np.array_equal(y, pl.evaluate("rms_norm", {"x": np.asarray(x, np.float64)})["y"].high), dtype

weight = jnp.ones((8, 1, 1), jnp.float8_e4m3fn)
assert pl.evaluate("linear", {"x": x, "weight": weight})["y"].high.ravel().tolist() == [36, 100, 164]

held = pl.Case("rms_norm", {"x": x.astype(jnp.bfloat16)}).inputs["x"]
assert held.dtype == "BF16" and held.jax().dtype == jnp.bfloat16
assert np.array_equal(np.asarray(held.jax(), np.float32), np.asarray(x, np.float32))

y = (x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)).astype(jnp.float32)
pl.assert_passes(pl.check("rms_norm", {"x": x}, {"y": y}, contract="ieee_f32"))
print("JAX's arrays: fine")
