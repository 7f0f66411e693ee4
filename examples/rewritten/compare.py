"""compare.py MODEL FAST: calls a SavedModel and the rewritten one in TensorFlow, compares, and times them in turns."""
import sys
import time

import numpy as np
import tensorflow as tf

tf.load_op_library(f"{sys.argv[2]}/assets.extra/libtfaot.so")
before, after = (tf.saved_model.load(path).signatures["serving_default"] for path in sys.argv[1:])

for batch in (1, 3):  # 1 is what the code is for; of 3 TensorFlow runs the nodes
    image = tf.constant(np.random.default_rng(batch).random((batch, 96, 96, 3), "float32"))
    want, have = before(image=image)["scores"].numpy(), after(image=image)["scores"].numpy()
    np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)
    print(f"batch of {batch}: the same answers")

image = tf.constant(np.random.default_rng(0).random((1, 96, 96, 3), "float32"))
times = {before: [], after: []}
for call in range(300):
    for function, taken in times.items():
        start = time.perf_counter()
        function(image=image)["scores"].numpy()
        taken.append(time.perf_counter() - start)
was, now = (float(np.median(taken[50:])) * 1e3 for taken in times.values())
print(f"median of a call: {was:.2f} ms before, {now:.2f} ms after")
sys.exit(now >= was)
