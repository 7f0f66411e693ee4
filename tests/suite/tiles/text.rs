//! Modules of products and convolutions by constants, as HLO text.
use crate::common::random::Random;
use std::fmt::Write;
use tfaot::compile;
use tfaot::hlo::text;
use tfaot::lower::Lowered;
use tfaot::tensor::{DType, Tensor};

/// A module under construction: what it multiplies, and its results.
pub struct Text {
    pub random: Random,
    /// The types of the left and the right side, and of the sums.
    types: [DType; 3],
    lines: String,
    results: Vec<(String, String)>,
    /// What all factors of the left side, and of the right one, are multiplied by.
    pub scales: [f64; 2],
}

impl Text {
    pub fn new(seed: u64, types: [DType; 3]) -> Text {
        Text { random: Random::new(seed), types, lines: String::new(), results: Vec::new(), scales: [1.0; 2] }
    }

    /// Random numbers of a type: floats in -2 to 2, integers of all sizes with the least and the largest ones among them.
    fn numbers(&mut self, dtype: DType, dims: &[u64], scale: f64) -> Vec<f64> {
        let count = dims.iter().product::<u64>() as usize;
        let (least, most) = match dtype {
            DType::S8 => (-128, 127),
            DType::U8 => (0, 255),
            DType::S32 => (-1_000_000, 1_000_000),
            _ => {
                let t = self.random.tensor(DType::F32, dims);
                return (0..t.len()).map(|i| t.get_f64(i).unwrap_or(0.0) * scale).collect();
            }
        };
        let number = |r: &mut Random| match r.below(4) {
            0 => r.of(&[least, most]),
            _ => least + r.below((most - least + 1) as usize) as i64,
        };
        (0..count).map(|_| number(&mut self.random) as f64).collect()
    }

    /// A constant of random numbers.
    fn constant(&mut self, dtype: DType, dims: &[u64], scale: f64) -> String {
        let name = format!("c{}", self.lines.len());
        let list = |values: Vec<String>, n: u64| -> Vec<String> {
            values.chunks(n as usize).map(|c| format!("{{{}}}", c.join(","))).collect()
        };
        let numbers = self.numbers(dtype, dims, scale);
        let written = |x: &f64| if dtype.is_float() { format!("{x:e}") } else { format!("{x}") };
        let all = dims.iter().rev().fold(numbers.iter().map(written).collect(), |all, &n| list(all, n)).concat();
        let _ = writeln!(self.lines, " {name} = {dtype}{dims:?} constant({all})");
        name
    }

    fn parameter(&mut self, dims: &[u64]) -> String {
        let (name, number) = (format!("x{}", self.lines.len()), self.results.len());
        let _ = writeln!(self.lines, " {name} = {}{dims:?} parameter({number})", self.types[0]);
        name
    }

    /// The sums of `what` as they are or, every other time, with a bias and no negative numbers.
    fn result(&mut self, dims: &[u64], what: &str) {
        let (n, columns) = (self.results.len(), dims[dims.len() - 1]);
        let dtype = self.types[2];
        let _ = writeln!(self.lines, " d{n} = {dtype}{dims:?} {what}");
        let mut last = format!("d{n}");
        if n.is_multiple_of(2) {
            let bias = self.constant(dtype, &[columns], 1.0);
            let axis = dims.len() - 1;
            let _ = writeln!(self.lines, " b{n} = {dtype}{dims:?} broadcast({bias}), dimensions={{{axis}}}");
            let _ = writeln!(self.lines, " a{n} = {dtype}{dims:?} add({last}, b{n})");
            let _ = writeln!(self.lines, " z{n} = {dtype}{dims:?} broadcast(zero), dimensions={{}}");
            let _ = writeln!(self.lines, " r{n} = {dtype}{dims:?} maximum(a{n}, z{n})");
            last = format!("r{n}");
        }
        self.results.push((last, format!("{dtype}{dims:?}")));
    }

    pub fn product(&mut self, rows: u64, terms: u64, columns: u64) {
        let x = self.parameter(&[rows, terms]);
        let w = self.constant(self.types[1], &[terms, columns], self.scales[1]);
        let dims = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
        self.result(&[rows, columns], &format!("dot({x}, {w}), {dims}"));
    }

    /// Products side by side, each with a right side of its own.
    pub fn batched(&mut self, batch: u64, rows: u64, terms: u64, columns: u64) {
        let x = self.parameter(&[batch, rows, terms]);
        let w = self.constant(self.types[1], &[batch, terms, columns], self.scales[1]);
        let dims = "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}";
        self.result(&[batch, rows, columns], &format!("dot({x}, {w}), {dims}"));
    }

    /// A convolution of planes of `size` with a square window, which keeps their size where its step is 1.
    pub fn convolution(&mut self, size: [u64; 3], window: u64, step: u64, channels: u64) {
        let [batch, side, features] = size;
        let (pad, out) = (window / 2, (side + window / 2 * 2 - window) / step + 1);
        let x = self.parameter(&[batch, side, side, features]);
        let w = self.constant(self.types[1], &[window, window, features, channels], self.scales[1]);
        let window = format!("size={window}x{window} stride={step}x{step} pad={pad}_{pad}x{pad}_{pad}");
        let what = format!("convolution({x}, {w}), window={{{window}}}, dim_labels=b01f_01io->b01f");
        self.result(&[batch, out, out, channels], &what);
    }

    pub fn finish(mut self) -> (Lowered, Vec<Tensor>) {
        let (names, shapes): (Vec<String>, Vec<String>) = self.results.iter().cloned().unzip();
        let (names, shapes) = (names.join(", "), shapes.join(", "));
        let all = format!(
            "HloModule m\nENTRY e {{\n zero = {}[] constant(0)\n{} ROOT t = ({shapes}) tuple({names}) }}\n",
            self.types[2], self.lines
        );
        let lowered =
            compile::wrap_module(text::parse(&all.replace(", ", ",")).expect("sound HLO text")).expect("arrays");
        let args = lowered.args.iter().map(|a| {
            let numbers = self.numbers(a.dtype, &a.dims, self.scales[0]);
            let bytes = numbers.iter().flat_map(|&v| Tensor::scalar_from_f64(a.dtype, v).bytes.to_vec());
            Tensor::new(a.dtype, a.dims.clone(), bytes.collect::<Vec<_>>())
        });
        let args = args.collect();
        (lowered, args)
    }
}
