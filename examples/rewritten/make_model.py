"""Writes the SavedModel `model`: a convolution net with depthwise blocks, as mobile nets have them."""
import keras

keras.utils.set_random_seed(2)
image = keras.Input((96, 96, 3), name="image")
x = keras.layers.Conv2D(16, 3, strides=2, padding="same", activation="relu")(image)
for filters, strides in [(32, 1), (64, 2), (64, 1), (128, 2), (128, 1), (128, 1)]:
    x = keras.layers.DepthwiseConv2D(3, strides=strides, padding="same", activation="relu")(x)
    x = keras.layers.Conv2D(filters, 1, activation="relu")(x)
x = keras.layers.GlobalAveragePooling2D()(x)
scores = keras.layers.Dense(10, activation="softmax")(x)
keras.Model({"image": image}, {"scores": scores}).export("model", verbose=False)
