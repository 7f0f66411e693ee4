"""Random graphs for the passes of auto-clustering: dataflow, variables, TensorFlow 1's loops and conditions, calls of functions,
functional control flow, scopes, and nodes that ask to be compiled or refuse. A seed makes always the same graph.
"""
import random

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.client import pywrap_tf_session

tf1 = tf.compat.v1
CPU = "/job:localhost/replica:0/task:0/device:CPU:"
F, I, B, R = tf.float32.as_datatype_enum, tf.int32.as_datatype_enum, tf.bool.as_datatype_enum, tf.resource.as_datatype_enum


def op_definitions():
    ops = op_def_pb2.OpList()
    ops.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    return {o.name: o for o in ops.op}


OPS = op_definitions()


def set_attr(attr, value):
    if isinstance(value, bool):
        attr.b = value
    elif isinstance(value, int):
        attr.i = value
    elif isinstance(value, str):
        attr.s = value.encode()
    elif isinstance(value, Type):
        attr.type = value.of
    elif isinstance(value, Types):
        attr.list.type.extend(value.of)
    elif isinstance(value, Func):
        attr.func.name = value.name
    elif isinstance(value, Funcs):
        for name in value.names:
            attr.list.func.add().name = name
    else:
        attr.tensor.CopyFrom(value)


class Type:
    def __init__(self, of):
        self.of = of


class Types:
    def __init__(self, of):
        self.of = of


class Func:
    def __init__(self, name):
        self.name = name


class Funcs:
    def __init__(self, names):
        self.names = names


class Block:
    """Nodes of a graph or of a function's body. `values` holds, by type, the spellings of tensors that exist."""

    def __init__(self, r, in_function, functions, wild):
        self.r, self.in_function, self.functions, self.wild = r, in_function, functions, wild
        self.nodes, self.names = [], []
        self.values = {F: [], I: [], B: [], R: []}
        self.variable_type = {}

    def add(self, op, name, inputs, outs, **attrs):
        node = tf1.NodeDef(name=name, op=op)
        node.input.extend(inputs)
        if not self.in_function:
            node.device = CPU + ("1" if self.wild and self.r.random() < 0.02 else "0")
        for key, value in attrs.items():
            set_attr(node.attr[key], value)
        r = self.r
        if self.names and r.random() < 0.12:
            for other in r.sample(self.names, min(len(self.names), r.choice([1, 1, 2, 3]))):
                node.input.append("^" + other)
        if self.wild:
            if r.random() < 0.04:
                node.attr["_XlaCompile"].b = r.random() < 0.5
            if r.random() < 0.1:
                node.attr["_XlaScope"].s = r.choice([b"a", b"b"])
            if r.random() < 0.06:
                node.attr["_XlaInternalScope"].s = r.choice([b"p", b"q"])
        self.nodes.append(node)
        self.names.append(name)
        for i, t in enumerate(outs):
            spelled = self.spelled(node, i)
            self.values[t].append(spelled)
        return node

    def spelled(self, node, index):
        if not self.in_function:
            return node.name + (f":{index}" if index else "")
        left = index
        if node.op not in OPS:
            return f"{node.name}:r{index}:0"
        for arg in OPS[node.op].output_arg:
            n = node.attr[arg.number_attr].i if arg.number_attr else 1
            if arg.type_list_attr:
                n = len(node.attr[arg.type_list_attr].list.type)
            if left < n:
                return f"{node.name}:{arg.name}:{left}"
            left -= n
        raise ValueError(node.op)

    def any(self, t):
        values = self.values[t]
        return self.r.choice(values[-8:] if self.r.random() < 0.7 else values)

    def constant(self, name, t, dims=()):
        value = {F: np.float32(1), I: np.int32(1), B: np.bool_(True)}[t]
        self.add("Const", name, [], [t], dtype=Type(t), value=tf.make_tensor_proto(np.full(dims, value)))

    def step(self, name, kind):
        r, pick = self.r, self.any
        if kind == "binary":
            self.add(r.choice(["AddV2", "Mul", "Sub"]), name, [pick(F), pick(F)], [F], T=Type(F))
        elif kind == "unary":
            self.add(r.choice(["Exp", "Tanh", "Relu", "Neg"]), name, [pick(F)], [F], T=Type(F))
        elif kind == "constant":
            large = r.random() < 0.05
            self.constant(name, r.choice([F, I]), (20000,) if large else r.choice([(), (), (2,), (20,)]))
        elif kind == "cast":
            self.add("Cast", name, [pick(I)], [F], SrcT=Type(I), DstT=Type(F))
        elif kind == "shape":
            op = r.choice(["Shape", "Shape", "Size", "Rank"])
            more = {} if op == "Rank" else dict(out_type=Type(I))
            self.add(op, name, [pick(F)], [I], T=Type(F), **more)
        elif kind == "noop":
            self.add("NoOp", name, ["^" + n for n in r.sample(self.names, min(3, len(self.names)))], [])
        elif kind == "unique":
            self.add("Unique", name, [pick(F)], [F, I], T=Type(F), out_idx=Type(I))
        elif kind == "check":
            self.add("CheckNumerics", name, [pick(F)], [F], T=Type(F), message="x")
        elif kind == "less":
            self.add(r.choice(["Less", "Greater"]), name, [pick(F), pick(F)], [B], T=Type(F))
        elif kind == "identity":
            self.add("Identity", name, [pick(F)], [F], T=Type(F))
        elif kind == "fill":
            self.add("Fill", name, [pick(I), pick(F)], [F], T=Type(F), index_type=Type(I))
        elif kind == "reshape":
            self.add("Reshape", name, [pick(F), pick(I)], [F], T=Type(F), Tshape=Type(I))
        elif kind == "random":
            self.add("RandomUniformInt", name, [pick(I), pick(I), pick(I)], [I], T=Type(I), Tout=Type(I))
        elif kind == "slice":
            size = pick(I)
            if r.random() < 0.6:
                sizes = np.array(r.choice([[2], [-1], [2, -1], [-1, -1], [-1, 3, 1]]), np.int32)
                self.add("Const", name + "s", [], [], dtype=Type(I), value=tf.make_tensor_proto(sizes))
                size = self.spelled(self.nodes[-1], 0)
            self.add("Slice", name, [pick(F), pick(I), size], [F], T=Type(F), Index=Type(I))
        elif kind == "shapes":
            self.add("ShapeN", name, [pick(F), pick(F)], [I, I], T=Type(F), N=2, out_type=Type(I))
        elif kind == "line":
            self.add("LinSpace", name, [pick(F), pick(F), pick(I)], [F], T=Type(F), Tidx=Type(I))
        elif kind == "read" and self.values[R]:
            v = r.choice(self.values[R])
            t = self.variable_type.get(v, F)
            self.add("ReadVariableOp", name, [v], [t], dtype=Type(t))
        elif kind == "assign" and self.values[R]:
            v = r.choice(self.values[R])
            t = self.variable_type.get(v, F)
            self.add("AssignVariableOp", name, [v, pick(t)], [], dtype=Type(t))
        elif kind == "count" and self.values[R]:
            v = r.choice(self.values[R])
            t = self.variable_type.get(v, F)
            self.constant(name + "c", t)
            self.add(r.choice(["AssignAddVariableOp", "AssignSubVariableOp"]), name, [v, self.values[t][-1]], [], dtype=Type(t))
        elif kind == "switch" and not self.in_function:
            self.add("Switch", name, [pick(F), pick(B)], [F, F], T=Type(F))
        elif kind == "merge" and not self.in_function:
            self.add("Merge", name, [pick(F), pick(F)], [F, I], T=Type(F), N=2)
        elif kind == "stage" and not self.in_function:
            if r.random() < 0.5:
                self.add("Stage", name, [pick(F)], [], dtypes=Types([F]))
            else:
                self.add("Unstage", name, [], [F], dtypes=Types([F]))
        elif kind in ("call", "if", "case", "while"):
            self.functional(name, kind)

    def functional(self, name, kind):
        r, pick = self.r, self.any
        of = [f for f in self.functions if f["kind"] == "step"]
        if kind == "while":
            loops = [f for f in self.functions if f["kind"] == "body"]
            if loops:
                f = r.choice(loops)
                types = Types([I, F, F, I])
                lower = {} if r.random() < 0.5 else dict(_lower_using_switch_merge=False)
                self.add(r.choice(["While", "StatelessWhile"]), name, [pick(I), pick(F), pick(F), pick(I)], [I, F, F, I],
                         T=types, cond=Func(f["cond"]), body=Func(f["name"]), **lower)
            return
        if not of:
            return
        f = r.choice(of)
        inputs = [pick(t) if self.values[t] else None for t in f["ins"]]
        if None in inputs:
            return
        same = [g for g in of if g["ins"] == f["ins"]]
        g = r.choice(same)
        tin, tout = Types(f["ins"]), Types(f["outs"])
        must = dict(_XlaMustCompile=True) if self.wild and r.random() < 0.1 else {}
        if kind == "call":
            op = r.choice(["PartitionedCall", "StatefulPartitionedCall", "function"])
            if op == "function":
                self.add(f["name"], name, inputs, f["outs"], **must)
            else:
                self.add(op, name, inputs, f["outs"], Tin=tin, Tout=tout, f=Func(f["name"]), **must)
        elif kind == "if":
            self.add(r.choice(["If", "StatelessIf"]), name, [pick(B), *inputs], f["outs"], Tcond=Type(B), Tin=tin, Tout=tout,
                     then_branch=Func(f["name"]), else_branch=Func(g["name"]))
        else:
            self.add(r.choice(["Case", "StatelessCase"]), name, [pick(I), *inputs], f["outs"], Tin=tin, Tout=tout,
                     branches=Funcs([f["name"], g["name"]]))


PLAIN = ["binary", "binary", "unary", "constant", "cast", "shape", "less", "identity", "fill", "reshape", "slice", "shapes", "line"]
WHOLE = PLAIN + ["noop", "unique", "check", "random", "read", "assign", "count", "switch", "switch", "merge", "merge", "stage"]
CALLS = ["call", "call", "call", "if", "case", "while"]


def function(r, library, known, number, wild):
    """Adds a function to `library`: a step on floats, or the body and the condition of a loop."""
    kind = r.choice(["step", "step", "step", "body"])
    ins = [I, F, F, I] if kind == "body" else r.choice([[F, F], [F, I], [F, I, F], [R, F]])
    block = Block(r, True, known, wild)
    for i, t in enumerate(ins):
        block.values[t].append(f"a{i}")
    if not block.values[F]:
        block.constant("f", F)
    block.constant("k", I)
    block.constant("b", B)
    odd = r.random()
    kinds = PLAIN + (CALLS if r.random() < 0.4 else [])
    for i in range(r.choice([1, 2, 4, 8])):
        block.step(f"n{i}", r.choice(kinds))
    if odd < 0.25:
        block.step("odd", r.choice(["unique", "check", "random", "read", "assign", "noop"]))
    name = f"f{number}"
    outs = ins if kind == "body" else [F]
    def close(name, block, outs, results):
        f = library.function.add()
        f.signature.name = name
        for i, t in enumerate(ins):
            f.signature.input_arg.add(name=f"a{i}", type=t)
        for i, t in enumerate(outs):
            f.signature.output_arg.add(name=f"r{i}", type=t)
            f.ret[f"r{i}"] = results[i]
        f.node_def.extend(block.nodes)
        f.signature.is_stateful = any(n.op in OPS and OPS[n.op].is_stateful for n in block.nodes)
        if wild and r.random() < 0.1:
            f.attr["_XlaCompile"].b = r.random() < 0.5
        if wild and r.random() < 0.1:
            f.attr["_noinline"].b = True
    # What a loop hands on unchanged may be a constant of it.
    results = [f"a{i}" if kind == "body" and r.random() < 0.5 else block.any(t) for i, t in enumerate(outs)]
    close(name, block, outs, results)
    entry = dict(name=name, kind=kind, ins=ins, outs=outs)
    if kind == "body":
        cond = Block(r, True, [], False)
        cond.values[F] += ["a1", "a2"]
        cond.values[I] += ["a0", "a3"]
        cond.step("c", "reshape" if r.random() < 0.3 else "unary")
        cond.step("test", "less")
        close(name + "_cond", cond, [B], [cond.values[B][-1]])
        entry["cond"] = name + "_cond"
    known.append(entry)


def dataflow(seed, calls, wild):
    """A graph of up to 120 steps."""
    r = random.Random(seed)
    graph = tf1.GraphDef()
    graph.versions.producer = tf1.GRAPH_DEF_VERSION if hasattr(tf1, "GRAPH_DEF_VERSION") else tf.version.GRAPH_DEF_VERSION
    known = []
    if calls:
        for number in range(r.choice([1, 2, 4])):
            function(r, graph.library, known, number, wild)
    block = Block(r, False, known, wild)
    for i in range(3):
        block.add("Placeholder", f"p{i}", [], [F], dtype=Type(F))
    block.add("Placeholder", "pb", [], [B], dtype=Type(B))
    block.add("Placeholder", "pi", [], [I], dtype=Type(I))
    for i in range(r.randrange(3)):
        t = F if i else I
        block.add("VarHandleOp", f"v{i}", [], [R], dtype=Type(t), shared_name=f"v{i}")
        block.variable_type[f"v{i}"] = t
    block.constant("c0", F)
    block.constant("c1", I)
    kinds = WHOLE + (CALLS * 2 if calls else [])
    for i in range(r.choice([8, 15, 30, 60, 120])):
        block.step(f"n{i}", r.choice(kinds))
    graph.node.extend(block.nodes)
    return graph


def loops(seed):
    """A graph with TensorFlow 1's loops and conditions, nested."""
    r = random.Random(seed)
    graph = tf.Graph()
    with graph.as_default():
        floats = [tf1.placeholder(tf.float32, [4], name=f"p{i}") for i in range(2)]
        truth = tf1.placeholder(tf.bool, [], name="pb")

        def steps(values, depth, count):
            values = list(values)
            for _ in range(count):
                kind = r.choice(["add", "mul", "exp", "tanh", "unique", "cond", "while", "while2", "sum", "size", "constant"])
                x, y = r.choice(values), r.choice(values)
                if kind == "add":
                    z = x + y
                elif kind == "mul":
                    z = x * y
                elif kind == "exp":
                    z = tf.exp(x)
                elif kind == "tanh":
                    z = tf.tanh(x)
                elif kind == "unique":
                    z = tf.unique(x)[0]
                    z.set_shape([4])
                elif kind == "sum":
                    z = tf.reduce_sum(x) + y
                elif kind == "constant":
                    z = tf.constant([1.0, 2.0, 3.0, 4.0]) + y
                elif kind == "size":
                    z = tf.cast(tf.raw_ops.Size(input=x), tf.float32) * y
                elif depth >= 2:
                    continue
                elif kind == "cond":
                    test = r.choice([truth, tf.reduce_sum(x) < 3.0])
                    branch = lambda: steps([x, y], depth + 1, r.randrange(1, 4))[-1]
                    z = tf1.cond(test, branch, branch)
                else:
                    state = [tf.constant(0), x] + ([y] if r.random() < 0.5 else [])

                    def body(i, *v):
                        inner = steps(list(v) + ([x] if r.random() < 0.3 else []), depth + 1, r.randrange(1, 4))
                        return [i + 1, inner[-1]] + ([v[1] * 2.0] if len(v) > 1 else [])

                    plain = lambda i, *v: i < 5
                    both = lambda i, *v: tf.logical_and(i < 5, tf.reduce_sum(v[0]) < 9.0)
                    z = tf1.while_loop(plain if kind == "while" else both, body, state)[1]
                values.append(z)
            return values

        tf.identity(steps(floats, 0, r.randrange(3, 9))[-1], name="out")
    made = graph.as_graph_def()
    for node in made.node:
        node.device = CPU + "0"
    return made
