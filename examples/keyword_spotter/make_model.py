"""Writes `model.pb`, a keyword spotter: the small DS-CNN of Zhang et al., "Hello Edge: Keyword Spotting on Microcontrollers" (2017), the
shape of MLPerf Tiny's benchmark, with seeded weights. Also writes `in.npz`, coefficients of one second of speech (49 frames of 10), the
same as `frames.h`, and `out.npz`, what TensorFlow makes of them.
"""
import keras
import numpy as np
import tensorflow as tf
from keras import layers
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

CHANNELS, WORDS = 64, 12

keras.utils.set_random_seed(7)


def activated(x):
    return layers.ReLU()(layers.BatchNormalization()(x))


frames = x = keras.Input((49, 10, 1), batch_size=1, name="frames")
x = activated(layers.Conv2D(CHANNELS, (10, 4), strides=2, padding="same", use_bias=False)(x))
for _ in range(4):
    x = activated(layers.DepthwiseConv2D(3, padding="same", use_bias=False)(x))
    x = activated(layers.Conv2D(CHANNELS, 1, use_bias=False)(x))
x = layers.GlobalAveragePooling2D()(x)
words = layers.Dense(WORDS, activation="softmax", name="words")(x)
model = keras.Model(frames, words)

r = np.random.default_rng(7)
model.set_weights([w + 0.2 * np.abs(r.normal(size=w.shape)) if w.ndim == 1 else w * 1.5 for w in model.get_weights()])

function = tf.function(lambda frames: {"words": model(frames)})
function = function.get_concrete_function(tf.TensorSpec((1, 49, 10, 1), tf.float32, name="frames"))
frozen = convert_variables_to_constants_v2(function)
tf.io.write_graph(frozen.graph, ".", "model.pb", as_text=False)
speech = r.normal(size=(1, 49, 10, 1)).astype(np.float32)
out = frozen(tf.constant(speech))
np.savez("in.npz", frames=speech)
np.savez("out.npz", Identity=np.array(out[0] if isinstance(out, (list, tuple)) else out["words"]))
with open("frames.h", "w") as header:
    numbers = ",\n  ".join(float(v).hex() + "f" for v in speech.ravel())
    header.write("/* `in.npz` of this folder, one second of speech as 49 frames of 10 coefficients. */\n")
    header.write(f"static const float frames[{speech.size}] = {{\n  {numbers}}};\n")
