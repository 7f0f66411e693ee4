"""Writes the SavedModel `model`: a decoder of KerasHub that writes text letter by letter, with its cache in a variable.

step(token) puts a token behind those before it and gives the token that it expects next; reset() begins a new text. The model is GPT-2's
with small sizes, trained here until it knows the lines below by heart. Also writes `out.txt`, what TensorFlow makes of "the ".
"""
import os
import sys

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import keras_hub
import numpy as np
import tensorflow as tf

LINES = ["a cache of keys and values grows by one token a step", "the state is one block and holds the cache of a text"]
LETTERS = "\nabcdefghijklmnopqrstuvwxyz "
LENGTH = 64


def tokens(text):
    return [LETTERS.index(letter) for letter in text]


def trained():
    keras.utils.set_random_seed(1)
    backbone = keras_hub.models.GPT2Backbone(
        vocabulary_size=len(LETTERS), num_layers=2, num_heads=2, hidden_dim=32, intermediate_dim=64, max_sequence_length=LENGTH, dropout=0.0)
    lm = keras_hub.models.GPT2CausalLM(backbone)
    rows = np.array([tokens("\n" + line + "\n" * (LENGTH - len(line))) for line in LINES])
    x = {"token_ids": rows[:, :-1], "padding_mask": np.ones_like(rows[:, :-1])}
    lm.compile(optimizer=keras.optimizers.Adam(3e-3), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    lm.fit(x, rows[:, 1:], epochs=400, verbose=0)
    return lm


class Decoder(tf.Module):
    def __init__(self, lm):
        b = lm.backbone
        # the model's variables alone: not what trained it
        self.weights, self.call = [w.value for w in lm.weights], lambda *inputs: lm.call_with_cache(*inputs)
        self.cache = tf.Variable(tf.zeros([1, b.num_layers, 2, LENGTH, b.num_heads, b.hidden_dim // b.num_heads]), name="cache")
        self.position = tf.Variable(0, name="position")

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32, name="token")])
    def step(self, token):
        logits, _, cache = self.call(tf.reshape(token, [1, 1]), self.cache, self.position)
        self.cache.assign(cache)
        self.position.assign_add(1)
        logits = tf.reshape(logits, [len(LETTERS)])
        return {"next": tf.argmax(logits, output_type=tf.int32), "logits": logits}

    @tf.function(input_signature=[])
    def reset(self):
        self.cache.assign(tf.zeros_like(self.cache))
        self.position.assign(0)
        return {"tokens": self.position.read_value()}


if __name__ == "__main__":
    decoder = Decoder(trained())
    tf.saved_model.save(decoder, sys.argv[1], signatures={"step": decoder.step, "reset": decoder.reset})
    decoder.reset()
    for token in tokens("\nthe "):
        text = decoder.step(tf.constant(token))["next"].numpy()
    written = "the "
    while text != 0 and len(written) < LENGTH - 2:
        written += LETTERS[text]
        text = decoder.step(tf.constant(text))["next"].numpy()
    with open("out.txt", "w") as file:
        file.write(written + "\n")
