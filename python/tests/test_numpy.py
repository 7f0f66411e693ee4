"""The package with numpy alone, on graphs whose answers TensorFlow gave. TFAOT_BINARY names the compiler."""

import json
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import numpy as np

import tfaot

GRAPHS = Path(__file__).parents[2] / "testdata" / "graphs"


def stored(name):
    """The graph, its feeds by field and its answers by field."""
    folder = GRAPHS / name

    def arrays(file):
        return {key.split(":")[0]: array for key, array in np.load(folder / file).items()}

    return folder / "graph.pb", arrays("feeds.npz"), arrays("expect.npz")


class Calls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.path, cls.feeds, cls.expect = stored("conv_net")
        cls.model = tfaot.compile(cls.path)

    def test_the_answer_is_tensorflows(self):
        results = self.model(**self.feeds)
        self.assertEqual(list(results), ["Identity"])
        np.testing.assert_allclose(results["Identity"], self.expect["Identity"], rtol=2e-6, atol=2.5e-7)

    def test_the_model_describes_itself(self):
        image = self.model.inputs["image"]
        self.assertEqual((image.name, image.dtype, image.shape), ("image:0", np.float32, (2, 16, 16, 3)))
        self.assertEqual(self.model.outputs["Identity"].shape, (2, 10))
        self.assertEqual(image.nbytes, 2 * 16 * 16 * 3 * 4)
        self.assertEqual(self.model.name, "conv_net")
        self.assertGreater(self.model.flops, 0)
        self.assertTrue(any("image:0" in d.message for d in self.model.diagnostics), self.model.diagnostics)
        self.assertIn("image: float32[2, 16, 16, 3]", repr(self.model))

    def test_inputs_by_place_and_by_tensorflows_name(self):
        image = self.feeds["image"]
        for results in (self.model(image), self.model(**{"image:0": image})):
            np.testing.assert_array_equal(results["Identity"], self.model(image=image)["Identity"])

    def test_results_go_where_they_are_wanted(self):
        mine = np.full((2, 10), np.nan, np.float32)
        results = self.model(**self.feeds, out={"Identity": mine})
        self.assertIs(results["Identity"], mine)
        np.testing.assert_allclose(mine, self.expect["Identity"], rtol=2e-6, atol=2.5e-7)

    def test_arrays_that_are_not_contiguous_are_read_right(self):
        image = self.feeds["image"]
        turned = np.asfortranarray(image)
        self.assertFalse(turned.flags.c_contiguous)
        np.testing.assert_array_equal(self.model(turned)["Identity"], self.model(image)["Identity"])

    def test_arguments_that_do_not_fit(self):
        image = self.feeds["image"]
        with self.assertRaisesRegex(TypeError, "float64 was given"):
            self.model(image.astype(np.float64))
        with self.assertRaisesRegex(ValueError, r"\[16, 16, 3\]"):
            self.model(image[0])
        with self.assertRaisesRegex(TypeError, "wants `image`"):
            self.model()
        with self.assertRaisesRegex(TypeError, "no input `picture`; it has `image`"):
            self.model(picture=image)
        with self.assertRaisesRegex(TypeError, "takes 1 inputs, and 2"):
            self.model(image, image)
        with self.assertRaisesRegex(ValueError, "Identity"):
            self.model(image, out={"Identity": np.empty((2, 9), np.float32)})
        with self.assertRaisesRegex(ValueError, "can't be written"):
            fixed = np.empty((2, 10), np.float32)
            fixed.flags.writeable = False
            self.model(image, out={"Identity": fixed})

    def test_calls_from_several_threads(self):
        image, wrong = self.feeds["image"], []
        want = self.model(image)["Identity"]

        def many():
            for _ in range(50):
                if not np.array_equal(self.model(image)["Identity"], want):
                    wrong.append(1)

        threads = [threading.Thread(target=many) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_threads_of_a_call_do_not_change_it(self):
        shared = tfaot.compile(self.path, threads=2)
        np.testing.assert_array_equal(shared(**self.feeds)["Identity"], self.model(**self.feeds)["Identity"])

    def test_saved_files_are_a_model(self):
        with tempfile.TemporaryDirectory() as folder:
            names = sorted(path.name for path in self.model.save(folder))
            self.assertEqual(names, ["conv_net.h", "conv_net.json", "conv_net.o", "libconv_net.so"])
            (more,) = [p for p in self.model.save(folder, emit=["archive"]) if p.suffix == ".a"]
            self.assertTrue(more.is_file())
            again = tfaot.load(Path(folder) / "libconv_net.so")
            np.testing.assert_array_equal(again(**self.feeds)["Identity"], self.model(**self.feeds)["Identity"])

    def test_weights_in_a_file_are_replaced(self):
        model = tfaot.compile(self.path, weights_file=True, threads=2)
        want = self.model(**self.feeds)["Identity"]
        np.testing.assert_array_equal(model(**self.feeds)["Identity"], want)
        with tempfile.TemporaryDirectory() as folder:
            names = sorted(path.name for path in model.save(folder))
            self.assertEqual(names, ["conv_net.h", "conv_net.json", "conv_net.o", "conv_net.weights", "libconv_net.so"])
            library, kept = Path(folder) / "libconv_net.so", Path(folder) / "conv_net.weights"
            again = tfaot.load(library)
            np.testing.assert_array_equal(again(**self.feeds)["Identity"], want)
            # all arrays are zeros: each class is as likely as the next
            other = Path(folder) / "other.weights"
            header = kept.read_bytes()[:64]
            other.write_bytes(header + bytes(kept.stat().st_size - len(header)))
            again.load_weights(other)
            even = again(**self.feeds)["Identity"]
            np.testing.assert_array_equal(even, np.full_like(even, 0.1))
            cut = Path(folder) / "cut.weights"
            cut.write_bytes(kept.read_bytes()[:-1])
            with self.assertRaisesRegex(tfaot.Error, "TFAOT_E_WEIGHTS"):
                again.load_weights(cut)
            np.testing.assert_array_equal(again(**self.feeds)["Identity"], even)
            with self.assertRaisesRegex(tfaot.Error, "can't be read"):
                tfaot.load(library, weights=Path(folder) / "nothing.weights")
        with self.assertRaisesRegex(tfaot.Error, "takes no others"):
            self.model.load_weights("conv_net.weights")

    def test_the_report_is_a_page(self):
        with tempfile.TemporaryDirectory() as folder:
            report = self.model.report(Path(folder) / "report.html", flags=["--no-compile"])
            self.assertIn("<html", (Path(folder) / "report.html").read_text()[:200])
        self.assertIn("<iframe", report._repr_html_())


class Sizes(unittest.TestCase):
    """Sizes that vary from call to call."""

    def test_a_batch_that_varies(self):
        path = GRAPHS.parent / "keras3"
        ((_, array),) = np.load(path / "feeds.npz").items()
        ((_, answer),) = np.load(path / "expect.npz").items()
        model = tfaot.compile(path, dims="1..8")
        ((field, result),) = zip(model.inputs, model.outputs)
        spec = model.inputs[field]
        self.assertEqual((spec.shape[0], spec.most[0]), (None, 8))
        with_threads = tfaot.compile(path, dims="1..8", threads=2, weights_file=True)
        ((name, size),) = model.sizes.items()
        self.assertEqual((size.least, size.most, size.is_result), (1, 8, False))
        self.assertIn("?", repr(model))
        for rows in (1, 5, 8):
            many = np.tile(array, (8, 1))[:rows]
            want = np.tile(answer, (8, 1))[:rows]
            for one in (model, with_threads):
                have = one(many)[result]
                self.assertEqual(have.shape, want.shape)
                np.testing.assert_allclose(have, want, rtol=2e-6, atol=2.5e-7 * np.abs(want).max())
            mine = np.empty(want.shape, np.float32)
            self.assertIs(model(many, out={result: mine})[result], mine)
            with self.assertRaisesRegex(ValueError, "and out has"):
                model(many, out={result: np.empty((rows + 1, *want.shape[1:]), np.float32)})
        with self.assertRaisesRegex(ValueError, f"`{name}` is 9, and may be 1 to 8"):
            model(np.tile(array, (9, 1))[:9])
        with self.assertRaisesRegex(ValueError, "was given"):
            model(array[:, 1:])

    def test_sizes_that_nobody_told_are_open_and_grow(self):
        path = GRAPHS.parent / "keras3"
        ((_, array),) = np.load(path / "feeds.npz").items()
        ((_, answer),) = np.load(path / "expect.npz").items()
        model = tfaot.compile(path)
        ((_, size),) = model.sizes.items()
        self.assertEqual((size.least, size.most), (1, 64))
        for rows in (1, 5, 100):
            many, want = (np.resize(one, (rows, *one.shape[1:])) for one in (array, answer))
            (have,) = model(many).values()
            np.testing.assert_allclose(have, want, rtol=2e-6, atol=2.5e-7 * np.abs(want).max())
        ((_, size),) = model.sizes.items()
        self.assertEqual(size.most, 128)
        told = tfaot.compile(path, dims={"batch": "1..8"})
        with self.assertRaises(tfaot.SizeError):
            told(np.resize(array, (9, *array.shape[1:])))

    def test_errors_name_the_arguments_of_this_package(self):
        text = (
            'node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } '
            'attr { key: "shape" value { shape { unknown_rank: true } } } }\n'
            'node { name: "y" op: "Relu" input: "x" attr { key: "T" value { type: DT_FLOAT } } }\n'
        )
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "relu.pbtxt"
            path.write_text(text)
            with self.assertRaisesRegex(tfaot.CompileError, r'feeds=\{"x:0": "f32\[1,224,224,3\]"\}') as raised:
                tfaot.compile(path)
            self.assertNotIn("--feed", str(raised.exception))
            path.write_text(text.replace("unknown_rank: true", "dim { size: -1 } dim { size: -1 }"))
            model = tfaot.compile(path)
            self.assertEqual(model.inputs["x"].shape, (None, None))
            for shape in ((3, 5), (70, 5), (2, 500)):
                x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
                (y,) = model(x).values()
                np.testing.assert_array_equal(y, np.maximum(x, 0))
            self.assertEqual([s.most for s in model.sizes.values()], [128, 512])

    def test_sizes_that_the_call_says(self):
        text = (
            'node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_BOOL } } '
            'attr { key: "shape" value { shape { dim { size: 3 } dim { size: 4 } } } } }\n'
            'node { name: "where" op: "Where" input: "x" attr { key: "T" value { type: DT_BOOL } } }\n'
        )
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "where.pbtxt"
            path.write_text(text)
            model = tfaot.compile(path)
        self.assertEqual(model.outputs["where"].most, (12, 2))
        for seed in range(5):
            x = np.random.default_rng(seed).integers(0, 2, (3, 4)).astype(bool)
            np.testing.assert_array_equal(model(x)["where"], np.argwhere(x))
        np.testing.assert_array_equal(model(np.zeros((3, 4), bool))["where"], np.empty((0, 2)))
        with self.assertRaisesRegex(ValueError, "only the call says"):
            model(x, out={"where": np.empty((12, 2), np.int64)})


class SelfTests(unittest.TestCase):
    def test_the_code_agrees_with_the_answers_that_it_has(self):
        for self_test in (1, GRAPHS / "conv_net" / "feeds.npz"):
            tfaot.compile(stored("conv_net")[0], self_test=self_test).self_test()

    def test_other_weights_are_told(self):
        with tempfile.TemporaryDirectory() as folder:
            made = tfaot.compile(stored("conv_net")[0], weights_file=True, self_test=1)
            made.self_test()
            made.save(folder)
            (path,) = Path(folder).glob("*.weights")
            content = bytearray(path.read_bytes())
            content[len(content) // 2 :] = bytes(len(content) - len(content) // 2)
            path.write_bytes(content)
            made.load_weights(path)
            with self.assertRaisesRegex(tfaot.CallError, "TFAOT_E_SELFTEST") as refused:
                made.self_test()
            self.assertEqual(refused.exception.code, 8)

    def test_code_without_one_says_so(self):
        with self.assertRaisesRegex(tfaot.Error, "--self-test"):
            tfaot.compile(stored("conv_net")[0]).self_test()


class Modules(unittest.TestCase):
    """Several functions over variables that they change."""

    def test_calls_in_order_are_tensorflows(self):
        for name in ("training", "variables", "flow"):
            folder = GRAPHS.parent / "modules" / name
            calls = [json.loads(line) for line in (folder / "calls.jsonl").read_text().splitlines()]
            for in_a_file in (False, True):
                with self.subTest(name, in_a_file=in_a_file):
                    model = tfaot.compile(folder / "saved_model", signature="all", weights_file=in_a_file)
                    self.judge(model, folder, calls)
                    model.reset()
                    self.judge(model, folder, calls)

    def judge(self, model, folder, calls):
        for call in calls:
            results = model.signatures[call["signature"]](**dict(np.load(folder / call["inputs"])))
            for key, want in np.load(folder / call["expect"]).items():
                bound = {} if want.dtype.kind in "biu" else {"rtol": 2e-5, "atol": 2e-6 * np.abs(want).max(initial=1)}
                np.testing.assert_allclose(results[key], want, **(bound or {"rtol": 0}))

    def test_variables_are_memory_of_the_model(self):
        folder = GRAPHS.parent / "modules" / "training"
        model = tfaot.compile(folder / "saved_model", signature=["dense", "sparse"])
        call = json.loads((folder / "calls.jsonl").read_text().splitlines()[0])
        first = {name: array.copy() for name, array in model.variables.items()}
        self.assertTrue(first)
        function = model.signatures[call["signature"]]
        self.assertTrue(function.changes_state)
        feeds = dict(np.load(folder / call["inputs"]))
        want = function(**feeds)
        self.assertTrue(any(not np.array_equal(a, first[name]) for name, a in model.variables.items()))
        for name, array in model.variables.items():
            array[...] = first[name]
        again = function(**feeds)
        for key, array in want.items():
            np.testing.assert_array_equal(again[key], array)
        with self.assertRaisesRegex(TypeError, "several functions"):
            model(**feeds)
        self.assertIn("sparse(", repr(model))


class Types(unittest.TestCase):
    def test_graphs_of_other_types(self):
        for name in ("integers", "reductions", "functions", "loops"):
            with self.subTest(name):
                path, feeds, expect = stored(name)
                model = tfaot.compile(path)
                results = model(**{**{f"{k}:0": v for k, v in feeds.items()}})
                self.assertEqual(set(results), set(expect))
                for key, want in expect.items():
                    self.assertEqual(results[key].dtype, want.dtype)
                    np.testing.assert_allclose(results[key], want, rtol=2e-6, atol=2.5e-7 * np.abs(want).max(initial=1))


class Refusals(unittest.TestCase):
    def test_a_file_that_is_not_there(self):
        with self.assertRaises(tfaot.CompileError) as caught:
            tfaot.compile("/nowhere/model.pb")
        self.assertEqual(caught.exception.code, "TFA0001")
        self.assertIn("/nowhere/model.pb", caught.exception.message)

    def test_every_blocker_is_carried(self):
        text = "".join(
            f'node {{ name: "x{i}" op: "Placeholder" attr {{ key: "dtype" value {{ type: DT_STRING }} }} }}\n'
            f'node {{ name: "n{i}" op: "StringLower" input: "x{i}" }}\n'
            for i in range(2)
        )
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "strings.pbtxt"
            path.write_text(text)
            answer = tfaot.check(path)
            self.assertFalse(answer)
            self.assertGreaterEqual(len(answer.blockers), 1)
            self.assertTrue(all(b.code.startswith("TFA") and b.level == "error" for b in answer.blockers))
            with self.assertRaises(tfaot.CompileError) as caught:
                tfaot.compile(path)
            self.assertTrue(caught.exception.blockers)
            self.assertIn(caught.exception.code, {b.code for b in caught.exception.blockers})

    def test_wrong_usage_is_told(self):
        path, _, _ = stored("conv_net")
        with self.assertRaisesRegex(tfaot.CompileError, "--nonsense"):
            tfaot.compile(path, flags=["--nonsense"])

    def test_what_is_no_model(self):
        with self.assertRaisesRegex(TypeError, "is no model"):
            tfaot.compile(3)

    def test_another_abi_is_refused(self):
        from tfaot import _abi

        path, _, _ = stored("conv_net")
        model = tfaot.compile(path)
        known, _abi.VERSION = _abi.VERSION, 77
        try:
            with self.assertRaisesRegex(tfaot.Error, "has version 1 of the C interface, and this package calls version 77"):
                tfaot.load(model.library)
        finally:
            _abi.VERSION = known


class Questions(unittest.TestCase):
    def test_a_graph_that_compiles(self):
        path, _, _ = stored("conv_net")
        answer = tfaot.check(path)
        self.assertTrue(answer)
        self.assertEqual(answer.blockers, ())

    def test_clusters(self):
        path, _, _ = stored("conv_net")
        found = tfaot.cluster(path)
        self.assertTrue(found["clusters"])

    def test_the_folder_for_cmake(self):
        self.assertTrue((Path(tfaot.cmake_dir()) / "tfaotConfig.cmake").is_file())

    def test_no_library_of_others_is_imported(self):
        script = "import sys, tfaot; sys.exit(bool({'tensorflow', 'keras', 'jax'} & set(sys.modules)))"
        self.assertEqual(subprocess.run([sys.executable, "-c", script], check=False).returncode, 0)


if __name__ == "__main__":
    unittest.main()
