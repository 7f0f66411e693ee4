"""Writes the SavedModel `model`, a Keras model of two inputs with an open batch, and files of 32-bit floats: five images and sizes
in `image.f32` and `size.f32`, and what Keras makes of them in `scores.f32`."""
import keras
import numpy as np

keras.utils.set_random_seed(1)
image = keras.Input((12, 12, 3), name="image")
size = keras.Input((2,), name="size")
x = keras.layers.Conv2D(8, 3, activation="relu")(image)
x = keras.layers.GlobalAveragePooling2D()(x)
x = keras.layers.Concatenate()([x, size])
scores = keras.layers.Dense(4, activation="softmax")(x)
model = keras.Model({"image": image, "size": size}, {"scores": scores})
model.export("model")

inputs = {"image": np.random.rand(5, 12, 12, 3).astype("float32"), "size": np.random.rand(5, 2).astype("float32")}
for name, array in {**inputs, **model.predict(inputs)}.items():
    array.tofile(f"{name}.f32")
