"""Writes the SavedModel `model`: a classifier of 8x8 images with the signatures train and predict.

train(x, y) takes a step of stochastic gradient descent with momentum, written out, and gives the loss and how many images of the
batch were right before it; predict(x) gives the class of each.
"""
import sys

import tensorflow as tf


class Classifier(tf.Module):
    def __init__(self):
        first, second = tf.random.Generator.from_seed(1), tf.random.Generator.from_seed(2)
        self.w1 = tf.Variable(first.normal([64, 32], stddev=0.15), name="dense/kernel")
        self.b1 = tf.Variable(tf.zeros([32]), name="dense/bias")
        self.w2 = tf.Variable(second.normal([32, 10], stddev=0.2), name="classes/kernel")
        self.b2 = tf.Variable(tf.zeros([10]), name="classes/bias")
        self.weights = [self.w1, self.b1, self.w2, self.b2]
        self.speed = [tf.Variable(tf.zeros_like(w), name=w.name.split(":")[0] + "/momentum") for w in self.weights]
        self.steps = tf.Variable(0, dtype=tf.int64, name="steps")

    def logits(self, x):
        hidden = tf.nn.relu(tf.reshape(x, [-1, 64]) @ self.w1 + self.b1)
        return hidden @ self.w2 + self.b2

    @tf.function(input_signature=[tf.TensorSpec([32, 8, 8], name="x"), tf.TensorSpec([32], tf.int32, name="y")])
    def train(self, x, y):
        with tf.GradientTape() as tape:
            logits = self.logits(x)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
        right = tf.reduce_sum(tf.cast(tf.equal(tf.argmax(logits, 1, tf.int32), y), tf.int32))
        for w, v, g in zip(self.weights, self.speed, tape.gradient(loss, self.weights)):
            v.assign(0.9 * v + g)
            w.assign_sub(0.05 * v)
        self.steps.assign_add(1)
        return {"loss": loss, "right": right, "step": self.steps.read_value()}

    @tf.function(input_signature=[tf.TensorSpec([32, 8, 8], name="x")])
    def predict(self, x):
        return {"class": tf.argmax(self.logits(x), 1, tf.int32)}


if __name__ == "__main__":
    model = Classifier()
    tf.saved_model.save(model, sys.argv[1], signatures={"train": model.train, "predict": model.predict})
