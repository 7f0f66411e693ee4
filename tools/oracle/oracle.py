"""TensorFlow's and XLA's own code in this process: the passes of auto-clustering, and the parser and verifier of HLO.

The two libraries beside this file are compiled against the headers and libraries of the TensorFlow that is imported, once for
each version of it, below target/oracle. They need a C++ compiler and about a minute each.
"""
import ctypes, hashlib, os, subprocess, tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = os.path.join(HERE, "..", "..", "target", "oracle")
# Headers that XLA's includes name and the package lacks: declarations are enough, nothing of them is called.
STUBS = {
    "farmhash.h": "#pragma once\n#include <cstddef>\n#include <cstdint>\n#include <utility>\nnamespace util {\n"
    "typedef std::pair<uint64_t, uint64_t> uint128_t;\nuint64_t Fingerprint64(const char*, size_t);\n"
    "uint32_t Fingerprint32(const char*, size_t);\nuint128_t Fingerprint128(const char*, size_t);\nuint64_t Fingerprint(uint64_t);\n"
    "inline uint64_t Uint128Low64(const uint128_t x) { return x.first; }\n"
    "inline uint64_t Uint128High64(const uint128_t x) { return x.second; }\n"
    "inline uint64_t Hash64(const char* s, size_t n) { return Fingerprint64(s, n); }\n}\n"
    "namespace farmhash { using ::util::Fingerprint32; using ::util::Fingerprint64; using ::util::Fingerprint128; using ::util::uint128_t; }\n",
    "highwayhash/arch_specific.h": "#pragma once\n",
    "highwayhash/hh_types.h": "#pragma once\n",
    "highwayhash/highwayhash.h": "#pragma once\n#define HH_TARGET_PREFERRED 0\n"
    "namespace highwayhash { template <int T> struct HighwayHashCatT { char opaque[512]; }; }\n",
}


def library(name):
    """The library made of NAME.cc; it is compiled where it is missing or older than its source."""
    with open(os.path.join(HERE, name + ".cc"), "rb") as f:
        mark = hashlib.sha256(f.read() + tf.__version__.encode()).hexdigest()[:16]
    path = os.path.join(TARGET, f"{name}-{mark}.so")
    if not os.path.exists(path):
        os.makedirs(TARGET, exist_ok=True)
        home = os.path.dirname(tf.__file__)
        with tempfile.TemporaryDirectory(dir=TARGET) as scratch:
            for header, text in STUBS.items():
                os.makedirs(os.path.dirname(os.path.join(scratch, header)), exist_ok=True)
                with open(os.path.join(scratch, header), "w") as f:
                    f.write(text)
            made = os.path.join(scratch, "made.so")
            subprocess.run(
                ["g++", "-std=c++17", "-O0", "-shared", "-fPIC", "-w", "-DNDEBUG", *tf.sysconfig.get_compile_flags(), "-o", made,
                 os.path.join(HERE, name + ".cc"), "-I" + scratch, "-L" + home, "-l:libtensorflow_cc.so.2",
                 "-l:libtensorflow_framework.so.2", "-Wl,-rpath," + home], check=True)
            os.replace(made, path)
    return ctypes.CDLL(path)


class Passes:
    """The passes, under the TF_XLA_FLAGS that this process has when the first graph runs: TensorFlow reads them once."""

    def __init__(self):
        self.call = library("passes").run_passes
        self.call.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_long]

    def run(self, graph, passes="m", jit=2):
        """Nodes in the order of their ids, each with its cluster or an empty string. Raises RuntimeError with TensorFlow's words."""
        out = ctypes.create_string_buffer(1 << 22)
        data = graph if isinstance(graph, bytes) else graph.SerializeToString()
        code = self.call(data, len(data), passes.encode(), jit, out, len(out))
        text = out.value.decode()
        if code:
            raise RuntimeError(text)
        return [tuple(line.split("\t")) for line in text.splitlines()]


class Hlo:
    """XLA's parser of text and protos, with its verifier."""

    def __init__(self):
        self.call = library("hlo").read_hlo
        self.call.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_long]

    def read(self, data, is_proto=False):
        """The module's name; raises RuntimeError with XLA's words."""
        out = ctypes.create_string_buffer(1 << 16)
        code = self.call(data, len(data), int(is_proto), out, len(out))
        text = out.value.decode(errors="replace")
        if code:
            raise RuntimeError(text)
        return text
