#!/usr/bin/env python3
"""TensorFlow's side of tools/demo: its answer for the picture, and the time of a call on one thread.

    demo_tensorflow.py MODEL.json PICTURE.pgm [ANSWER.txt]     with ANSWER.txt: the answer is written there

A TF.js model.json holds a GraphDef as JSON without the values of its constants: they are put back from the weight file.
Handles what this model needs: float32 weights, fused convolutions. Needs tensorflow==2.21.0.
"""
import json
import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import tensorflow as tf
from google.protobuf import json_format


def graph_def(path):
    """The GraphDef of a TF.js graph model."""
    with open(path) as f:
        model = json.load(f)
    values = {}
    for group in model["weightsManifest"]:
        blob = b"".join(open(os.path.join(os.path.dirname(path), p), "rb").read() for p in group["paths"])
        at = 0
        for weight in group["weights"]:
            dtype = np.dtype(weight["dtype"])
            count = int(np.prod(weight["shape"]))
            values[weight["name"]] = np.frombuffer(blob, dtype, count, at).reshape(weight["shape"])
            at += count * dtype.itemsize
    topology = dict(model["modelTopology"])
    topology["versions"] = {"producer": 440}
    graph = json_format.ParseDict(topology, tf.compat.v1.GraphDef(), ignore_unknown_fields=True)
    for node in graph.node:
        if node.op == "Const":
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(values[node.name]))
        elif node.op == "_FusedConv2D":
            del node.attr["TArgs"].list.type[:]
            node.attr["TArgs"].list.type.extend([1] * node.attr["num_args"].i)
    return graph


def picture(path):
    """A plain PGM (P2) as f32[1,h,w,1] in -1..1."""
    words = [w for line in open(path) if not line.startswith("#") for w in line.split()]
    width, height, top = map(int, words[1:4])
    return np.array(words[4:], np.float32).reshape(1, height, width, 1) / np.float32(top) * 2 - 1


def main():
    tf.import_graph_def(graph_def(sys.argv[1]), name="")
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    with tf.compat.v1.Session(graph=tf.compat.v1.get_default_graph(), config=config) as session:
        call = session.make_callable("Identity:0", ["input_1:0"])
        x = picture(sys.argv[2])
        answer, times = call(x), []
        for _ in range(200):
            start = time.perf_counter()
            call(x)
            times.append(time.perf_counter() - start)
    if len(sys.argv) > 3:
        with open(sys.argv[3], "w") as f:
            f.write("".join("%.9g\n" % v for v in answer.ravel()))
    print("TensorFlow %s: %.3f ms a call on one thread (fastest of 200)" % (tf.__version__, min(times) * 1e3))


if __name__ == "__main__":
    tf.compat.v1.disable_eager_execution()
    main()
