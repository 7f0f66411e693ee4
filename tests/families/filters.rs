//! `filter`: gradients of filters: windows as large as planes, whose results are a few taps along each axis.
use super::common::random::Random;
use super::folds::{Axis, window_text};
use super::products::epilogue;
use super::text::{Case, Fill, Rule, Text, some, sum_bound};
use tfaot::tensor::DType;

/// An axis of the plane that a filter of 1 to 5 taps, perhaps with strides, made a gradient of.
fn axis(r: &mut Random) -> Axis {
    loop {
        let pads = (r.of(&[0, 1, 1, 2, 3, -1]), r.of(&[0, 1, 1, 2, 3, -1]));
        let axis = Axis {
            input: 2 + r.below(14) as u64,
            size: 2 + r.below(14) as u64,
            stride: r.of(&[1, 1, 1, 1, 2]),
            pads,
            base: 1,
            dilation: r.of(&[1, 1, 1, 1, 2]),
            output: 0,
        };
        if let Some(axis) = axis.fitted().filter(|axis| axis.output <= 9) {
            return axis;
        }
    }
}

pub fn filter(r: &mut Random) -> Case {
    let mut t = Text::default();
    let rank = r.of(&[1usize, 2, 2, 2, 3]);
    let axes: Vec<Axis> = (0..rank).map(|_| axis(r)).collect();
    let dtype = r.of(&[DType::F32, DType::F32, DType::F32, DType::F64]);
    let (images, from, to) = (some(r, 5), r.of(&[1, 3, 8, 16, 17, 32]), r.of(&[8, 16, 16, 24, 32, 48, 64, 10]));
    let of = |f: &dyn Fn(&Axis) -> u64| axes.iter().map(f).collect::<Vec<u64>>();
    let x = [vec![images], of(&|a| a.input), vec![from]].concat();
    let gradient = [vec![images], of(&|a| a.size), vec![to]].concat();
    let result = [of(&|a| a.output), vec![from, to]].concat();
    let terms = images * axes.iter().map(|a| a.size).product::<u64>();
    let exact = r.below(3) > 0;
    let fill = if exact { Fill::Quarters } else { Fill::Plain };
    let (x, gradient) = (t.param(dtype, &x, fill), t.param(dtype, &gradient, fill));
    let digits = &"012"[..rank];
    let out = t.op(
        dtype,
        &result,
        format_args!(
            "convolution({}, {}), window={}, dim_labels=f{digits}b_i{digits}o->{digits}bf",
            x.name,
            gradient.name,
            window_text(&axes)
        ),
    );
    let bound = sum_bound(dtype, terms, 4.0);
    epilogue(&mut t, r, &out, Rule::new(exact, bound));
    t.finish()
}
