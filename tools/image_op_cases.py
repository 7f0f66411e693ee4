"""Cases of images, sound, morphology and weights in 8 bits for tools/make_op_cases."""
import numpy as np
import tensorflow as tf

R = tf.raw_ops
F16, F32, F64, I32, U8 = np.float16, np.float32, np.float64, np.int32, np.uint8


def random(seed, *shape, dtype=F32):
    normal = np.random.RandomState(seed).standard_normal(shape)
    return (normal * 3).astype(np.int64).astype(dtype) if np.dtype(dtype).kind in "iu" else normal.astype(dtype)


def cases(F, C):
    """The makers of the cases by op; F feeds a tensor, C makes a constant."""
    corners = np.random.RandomState(7).uniform(-0.3, 1.2, (2, 12, 4)).astype(F32)
    corners[..., 2:] += 0.2

    def drawn(op):
        """Boxes in turn, some half outside, some inverted, with one color, several and none given."""
        out = []
        for depth, dtype, count in ((1, F32, 12), (3, F16, 5), (4, F32, 3)):
            images = dict(images=F(random(1, 2, 7, 9, depth, dtype=dtype), dtype), boxes=F(corners[:, :count].copy()))
            colors = [{}] if op == "DrawBoundingBoxes" else [dict(colors=F(random(2, n, 4))) for n in (0, 1, 3)]
            out += [getattr(R, op)(**images, **color) for color in colors]
        return out

    def glimpses(op):
        out = []
        for centered in (False, True):
            for normalized in (False, True):
                for size in ([3, 4], [9, 2]):
                    offsets = random(3, 3, 2) * (0.6 if normalized else 4)
                    out.append(getattr(R, op)(input=F(random(4, 3, 6, 7, 2)), size=C(size), offsets=F(offsets.astype(F32)), centered=centered, normalized=normalized, noise="zero", uniform_noise=False))
        return out

    def crops(of_image):
        boxes, owner = corners[0, :3].copy(), np.array([1, 0, 1], I32)
        out = []
        for rows, columns in ((3, 4), (1, 2), (1, 1)):
            args = dict(grads=F(random(5, 3, rows, columns, 2)), boxes=F(boxes), box_ind=F(owner, I32))
            if of_image:
                out += [R.CropAndResizeGradImage(**args, image_size=C([2, 5, 6, 2]), T=dtype, method=method) for method, dtype in (("bilinear", F32), ("nearest", F64), ("bilinear", F16))]
            else:
                out += [R.CropAndResizeGradBoxes(**args, image=F((random(6, 2, 5, 6, 2) * 9).astype(dtype), dtype)) for dtype in (F32, F64, np.int16)]
        return out

    def dilated(op):
        """With windows of nothing but NaN or -inf, holes and edges."""
        out = []
        for dtype, padding, strides, rates, strange in ((F32, "SAME", (1, 2), (1, 1), 0), (F64, "VALID", (2, 1), (2, 1), 0), (F32, "SAME", (3, 2), (2, 2), np.nan), (F32, "VALID", (1, 1), (1, 1), -np.inf), (F16, "SAME", (2, 2), (1, 2), 0),
                                                       (np.uint16, "SAME", (1, 2), (1, 1), 0), (np.int64, "SAME", (2, 2), (2, 1), 0), (np.uint8, "VALID", (1, 1), (1, 1), 0)):
            x, filter = random(8, 2, 7, 8, 3, dtype=dtype), random(9, 2, 3, 3, dtype=dtype)
            if strange != 0:
                x[0, 1:6, 1:7] = strange
            more = dict(strides=[1, *strides, 1], rates=[1, *rates, 1], padding=padding)
            shape = R.Dilation2D(input=C(x, dtype), filter=C(filter, dtype), **more).shape
            out.append(getattr(R, op)(input=F(x, dtype), filter=F(filter, dtype), out_backprop=F(random(10, *shape, dtype=dtype), dtype), **more))
        return out

    def hybrid(op):
        out = []
        weights = np.random.RandomState(11).randint(-128, 128, (4, 6) if op.endswith("DotHybrid") else (5, 3, 2, 2)).astype(np.int8)
        features = 6 if op.endswith("DotHybrid") else 5
        for axis in (-1, 1 if op.endswith("DotHybrid") else 0):
            scales, zeros = (0.05, 3) if axis < 0 else (np.arange(1, features + 1) / 50, np.arange(features) - 2)
            args = dict(rhs=tf.bitcast(F(weights, np.int8), tf.qint8), rhs_scales=F(np.asarray(scales, F32)), rhs_zero_points=F(np.asarray(zeros, I32), I32), Tout=tf.float32,
                        rhs_quantization_axis=axis, rhs_quantization_min_val=-128, rhs_quantization_max_val=127)
            if op.endswith("DotHybrid"):
                x = np.concatenate([random(12, 3, 4), np.abs(random(13, 1, 4)), np.zeros((1, 4), F32)])
                out.append(R.UniformQuantizedDotHybrid(lhs=F(x), **args))
                # items of one number
                out.append(R.UniformQuantizedDotHybrid(lhs=F(x[:, :1]), **{**args, "rhs": tf.bitcast(F(weights[:1], np.int8), tf.qint8)}))
            else:
                out += [R.UniformQuantizedConvolutionHybrid(lhs=F(random(14, 2, 3, 5, 6)), **args, padding=padding, window_strides=[1, 2]) for padding in ("SAME", "VALID")]
        return out

    def fractional(op, dtypes=(F32, F64, I32, np.int64)):
        """Windows of both sizes, of one size, of a single element, by both ways to draw; pooled numbers with NaN and infinities."""
        out = []
        for (rows, columns), ratio in (((7, 9), (1.44, 1.73)), ((8, 6), (2.0, 3.0)), ((5, 4), (1.0, 4.0)), ((11, 3), (3.6, 1.25))):
            for overlapping in (False, True):
                for pseudo_random in (False, True):
                    for i, dtype in enumerate(dtypes):
                        x = random(20 + i, 2, rows, columns, 2, dtype=dtype)
                        if np.dtype(dtype).kind == "f" and "Grad" not in op:
                            x[0, 1:3], x[1, 0], x[1, -1, 0] = -np.inf, np.nan if "Max" in op else 1, np.inf
                        more = dict(pooling_ratio=[1.0, *ratio, 1.0], pseudo_random=pseudo_random, overlapping=overlapping, deterministic=True, seed=5, seed2=-3 + i)
                        images = F(x, dtype)
                        pooled = getattr(R, op.replace("Grad", ""))(value=images, **more)
                        if "Grad" not in op:
                            out += pooled
                            continue
                        along = dict(row_pooling_sequence=pooled[1], col_pooling_sequence=pooled[2], overlapping=overlapping)
                        grads = F(random(30 + i, *pooled[0].shape, dtype=dtype), dtype)
                        if np.dtype(dtype).kind == "i" and "Avg" in op:
                            # the kernel cuts off sums of doubles, which depend on their order where quotients are not exact
                            grads = grads * (720 * 7)
                        if "Max" in op:
                            out.append(R.FractionalMaxPoolGrad(orig_input=images, orig_output=pooled[0], out_backprop=grads, **along))
                        else:
                            out.append(R.FractionalAvgPoolGrad(orig_input_tensor_shape=C(x.shape, np.int64), out_backprop=grads, **along))
        # boundaries that no pool makes: windows of all sizes that leave elements out
        rows, columns = (F(np.array(v, np.int64), np.int64) for v in ([0, 1, 6, 7], [2, 3, 9]))
        x, g = random(40, 1, 8, 9, 2), random(41, 1, 3, 2, 2)
        for overlapping in (False, True):
            if op == "FractionalMaxPoolGrad":
                pooled = np.stack([np.stack([x[:, a:b + overlapping, c:d + overlapping].max((1, 2)) for c, d in ((2, 3), (3, 9))], 1) for a, b in ((0, 1), (1, 6), (6, 7))], 1)
                out.append(R.FractionalMaxPoolGrad(orig_input=F(x), orig_output=F(pooled), out_backprop=F(g), row_pooling_sequence=rows, col_pooling_sequence=columns, overlapping=overlapping))
            if op == "FractionalAvgPoolGrad":
                out.append(R.FractionalAvgPoolGrad(orig_input_tensor_shape=C(x.shape, np.int64), out_backprop=F(g), row_pooling_sequence=rows, col_pooling_sequence=columns, overlapping=overlapping))
        return out

    def distorted():
        """Crops at once and after many attempts, of objects large and small, and the whole image where none will do."""
        boxes, none = [[[0.1, 0.2, 0.5, 0.9], [0.6, 0.05, 0.95, 0.3]]], np.zeros([1, 0, 4], F32)
        kinds = [((64, 96, 3), boxes, 0.1, {}), ((97, 41, 1), boxes, 0.9, {}), ((64, 64, 3), none, 0.5, {}), ((33, 50, 3), boxes, 0.0, dict(area_range=[0.3, 0.4], aspect_ratio_range=[2.0, 2.5])), ((100, 7, 3), boxes, 1.0, dict(max_attempts=3)),
                 ((1, 1, 1), none, 0.1, {}), ((40, 40, 3), boxes, 0.7, dict(area_range=[0.9, 0.2])), ((90, 120, 3), [[[0.5, 0.5, 0.5, 0.9]]], 0.1, dict(max_attempts=5)), ((1000, 1500, 3), boxes, 0.99, dict(max_attempts=40))]
        return [
            r for size, given, covered, more in kinds for i, seed in enumerate(([1, 2], [-7, 12345], [2**31 - 1, 0])) for dtype in ((I32, np.int64, np.int16 if max(size) < 1000 else I32)[i],)
            for r in R.StatelessSampleDistortedBoundingBox(image_size=F(np.array(size, dtype), dtype), bounding_boxes=F(np.asarray(given, F32)), min_object_covered=F(covered), seed=C(seed), use_image_if_no_bounding_boxes=True, **more)]

    def quantized_resize():
        """Integers of 8 and 32 bits, to their ends, to larger and smaller images."""
        out = []
        for dtype, levels in ((tf.quint8, np.random.RandomState(3).randint(0, 256, (2, 5, 6, 3)).astype(U8)), (tf.qint32, np.random.RandomState(4).randint(-2**31, 2**31, (1, 5, 6, 2)).astype(I32)), (None, random(50, 1, 5, 6, 2))):
            if dtype is not None:
                levels.ravel()[:9] = np.repeat([np.iinfo(levels.dtype).min, np.iinfo(levels.dtype).max, 0], 3)
            for size in ([8, 3], [2, 17], [5, 6], [1, 1], [11, 13]):
                for corners, half in ((False, False), (True, False), (False, True)):
                    images = F(levels, levels.dtype.type) if dtype is None else tf.bitcast(F(levels, levels.dtype.type), dtype)
                    y, low, high = R.QuantizedResizeBilinear(images=images, size=C(size), min=F(-1.5), max=F(2.25), align_corners=corners, half_pixel_centers=half)
                    out += [y if dtype is None else tf.bitcast(y, levels.dtype), low, high]
        return out

    def per_channel(op):
        out = []
        for seed, scale, ends in ((1, 2**30, (-3.0, 4.5)), (2, 2**20, (-0.01, 0.002)), (3, 2**31 - 1, (-200.0, 6.0))):
            q = (np.random.RandomState(seed).uniform(-1, 1, (2, 3, 4, 5)) * scale).astype(I32)
            if seed == 2:
                q = np.abs(q)
            q.ravel()[:3] = [0, q.max(), q.min()]
            low, high = np.array([-1, -2, -0.5, -3, 0], F32), np.array([2, 1.5, 8, 3, 4], F32)
            args = dict(input=tf.bitcast(F(q, I32), tf.qint32), input_min=F(low), input_max=F(high))
            if op == "RequantizePerChannel":
                if seed == 1:
                    low[1] = np.nan
                    args.update(input_min=F(low))
                for dtype in (tf.qint8, tf.quint8):
                    y, a, b = R.RequantizePerChannel(**args, requested_output_min=F(ends[0]), requested_output_max=F(ends[1]), out_type=dtype)
                    out += [tf.bitcast(y, tf.int8 if dtype == tf.qint8 else tf.uint8), a, b]
            else:
                out += [r for clip in (1e30, 6.0, 0.001) for r in R.RequantizationRangePerChannel(**args, clip_value_max=clip)]
                # NaN in the first end of one channel and the second of another
                args.update(input_min=F(np.array([-1, np.nan, -0.5, -3, 0], F32)), input_max=F(np.array([np.nan, 1.5, 8, 3, 4], F32)))
                out += list(R.RequantizationRangePerChannel(**args, clip_value_max=1e30))
        return out

    kernels = ("lanczos3", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic")
    grid = dict(grads=(2, 7, 5, 2), image=(2, 4, 9, 2))
    return {
        **{op: lambda op=op: drawn(op) for op in ("DrawBoundingBoxes", "DrawBoundingBoxesV2")},
        **{op: lambda op=op: glimpses(op) for op in ("ExtractGlimpse", "ExtractGlimpseV2")},
        "CropAndResizeGradImage": lambda: crops(True),
        "CropAndResizeGradBoxes": lambda: crops(False),
        "ScaleAndTranslateGrad": lambda: [R.ScaleAndTranslateGrad(grads=F(random(1, *grid["grads"])), original_image=F(random(2, *grid["image"])), scale=C([1.7, 0.6], F32), translation=C([0.3, -0.7], F32),
                                                                  kernel_type=kernel, antialias=antialias) for kernel in kernels for antialias in (True, False)],
        # the kernel rounds the terms of its sums to f32 for f64 too
        "ResizeBicubicGrad": lambda: [tf.cast(R.ResizeBicubicGrad(grads=F(np.abs(random(1, *grid["grads"])) + 1), original_image=F(random(2, *grid["image"], dtype=dtype), dtype), align_corners=corners, half_pixel_centers=half), F32)
                                      for corners, half in ((False, False), (True, False), (False, True)) for dtype in (F32, F64)],
        **{op: lambda op=op: fractional(op) for op in ("FractionalMaxPool", "FractionalAvgPool", "FractionalMaxPoolGrad", "FractionalAvgPoolGrad")},
        "StatelessSampleDistortedBoundingBox": distorted, "QuantizedResizeBilinear": quantized_resize,
        **{op: lambda op=op: per_channel(op) for op in ("RequantizePerChannel", "RequantizationRangePerChannel")},
        **{op: lambda op=op: dilated(op) for op in ("Dilation2DBackpropInput", "Dilation2DBackpropFilter")},
        **{op: lambda op=op: hybrid(op) for op in ("UniformQuantizedDotHybrid", "UniformQuantizedConvolutionHybrid")},
        "AudioSpectrogram": lambda: [R.AudioSpectrogram(input=F(random(3, n, 2)), window_size=window, stride=stride, magnitude_squared=squared)
                                     for n, window, stride in ((60, 16, 8), (60, 13, 5), (9, 2, 1), (60, 60, 7)) for squared in (False, True)],
        "Mfcc": lambda: [R.Mfcc(spectrogram=F((np.abs(random(4, 2, 3, n)) * factor).astype(F32)), sample_rate=C(rate), upper_frequency_limit=upper, filterbank_channel_count=filters, dct_coefficient_count=kept)
                         for n, rate, upper, filters, kept, factor in ((257, 16000, 4000.0, 40, 13, 1), (65, 8000, 3000.0, 10, 10, 0), (33, 7000, 4000.0, 5, 3, 1), (129, 16000, 8000.0, 20, 13, 1))],
    }
