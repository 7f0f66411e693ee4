//! Random tensors and random small HLO modules, the same for the same seed.
use std::fmt::Write;
use tfaot::tensor::{DType, Tensor};

/// A small generator (splitmix64).
pub struct Random(u64);

impl Random {
    /// Numbers that depend on `seed` alone.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }
    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }
    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
    /// An element of `all`.
    pub fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
    /// Floats in -2..2, integers in 0..4.
    pub fn tensor(&mut self, dtype: DType, dims: &[u64]) -> Tensor {
        let n: u64 = dims.iter().product();
        let mut bytes = Vec::new();
        for _ in 0..n {
            let unit = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
            let value = if dtype.is_float() { unit * 4.0 - 2.0 } else { (unit * 4.0).floor() };
            bytes.extend_from_slice(&Tensor::scalar_from_f64(dtype, value).bytes);
        }
        Tensor::new(dtype, dims.to_vec(), bytes)
    }
}

struct Value {
    name: String,
    dims: Vec<u64>,
}

struct Maker {
    random: Random,
    text: String,
    values: Vec<Value>,
}

fn shape(dims: &[u64]) -> String {
    let dims: Vec<String> = dims.iter().map(u64::to_string).collect();
    format!("f32[{}]", dims.join(","))
}

fn list<T: ToString>(all: impl IntoIterator<Item = T>) -> String {
    all.into_iter().map(|x| x.to_string()).collect::<Vec<_>>().join(",")
}

impl Maker {
    fn add(&mut self, dims: Vec<u64>, rhs: &str) -> usize {
        let name = format!("v{}", self.values.len());
        let _ = writeln!(self.text, "  {name} = {} {rhs}", shape(&dims));
        self.values.push(Value { name, dims });
        self.values.len() - 1
    }
    /// A recent value with at least one dimension.
    fn pick(&mut self) -> usize {
        let n = self.values.len();
        loop {
            let i = n - 1 - self.random.below(n.min(6));
            if !self.values[i].dims.is_empty() || n < 2 {
                return i;
            }
        }
    }
    fn parts(&self, i: usize) -> (String, Vec<u64>) {
        (self.values[i].name.clone(), self.values[i].dims.clone())
    }
    /// `i` made as large as `dims`, whose axes `kept` it has.
    fn broadcast(&mut self, i: usize, dims: &[u64], kept: &[usize]) -> usize {
        let name = self.values[i].name.clone();
        self.add(dims.to_vec(), &format!("broadcast({name}), dimensions={{{}}}", list(kept)))
    }
    fn reduce(&mut self, i: usize, axes: &[usize]) -> usize {
        let (name, dims) = self.parts(i);
        let kept: Vec<u64> = (0..dims.len()).filter(|d| !axes.contains(d)).map(|d| dims[d]).collect();
        let (init, to) = self.random.of(&[("zero", "add"), ("low", "max")]);
        self.add(kept, &format!("reduce({name}, {init}), dimensions={{{}}}, to_apply={to}", list(axes)))
    }
    fn step(&mut self) {
        let i = self.pick();
        let (name, dims) = self.parts(i);
        let rank = dims.len();
        match self.random.below(11) {
            0 => {
                let op = self.random.of(&["tanh", "negate", "abs", "logistic", "floor"]);
                self.add(dims, &format!("{op}({name})"));
            }
            1 | 2 => {
                let same: Vec<usize> = (0..self.values.len()).filter(|&j| self.values[j].dims == dims).collect();
                let j = self.random.of(&same);
                let other = self.values[j].name.clone();
                let op = self.random.of(&["add", "subtract", "maximum", "minimum"]);
                self.add(dims, &format!("{op}({name}, {other})"));
            }
            3 => {
                let axis = self.random.below(rank);
                self.reduce(i, &[axis]);
            }
            4 => {
                // a reduction that comes back to its row, as in softmax and norms
                let kept: Vec<usize> = (0..rank.saturating_sub(1)).collect();
                let r = self.reduce(i, &[rank - 1]);
                let b = self.broadcast(r, &dims, &kept);
                let other = self.values[b].name.clone();
                let c = self.add(dims.clone(), &format!("subtract({name}, {other})"));
                let c = self.values[c].name.clone();
                self.add(dims, &format!("tanh({c})"));
            }
            5 => {
                let mut perm: Vec<usize> = (0..rank).collect();
                let (a, b) = (self.random.below(rank), self.random.below(rank));
                perm.swap(a, b);
                let to = perm.iter().map(|&p| dims[p]).collect();
                self.add(to, &format!("transpose({name}), dimensions={{{}}}", list(perm)));
            }
            6 => {
                let bounds: Vec<(u64, u64)> = dims
                    .iter()
                    .map(|&n| {
                        let from = self.random.below(n.min(3) as usize) as u64;
                        (from, from + 1 + self.random.below((n - from) as usize) as u64)
                    })
                    .collect();
                let to = bounds.iter().map(|b| b.1 - b.0).collect();
                let parts = bounds.iter().map(|b| format!("[{}:{}]", b.0, b.1));
                self.add(to, &format!("slice({name}), slice={{{}}}", list(parts)));
            }
            7 => {
                let pads: Vec<(u64, u64)> =
                    dims.iter().map(|_| (self.random.below(3) as u64, self.random.below(2) as u64)).collect();
                let to: Vec<u64> = dims.iter().zip(&pads).map(|(n, p)| n + p.0 + p.1).collect();
                if to.iter().product::<u64>() > 4000 {
                    return;
                }
                let parts: Vec<String> = pads.iter().map(|p| format!("{}_{}", p.0, p.1)).collect();
                self.add(to, &format!("pad({name}, zero), padding={}", parts.join("x")));
            }
            8 => {
                let n = dims.iter().product::<u64>();
                let to = if n % 2 == 0 { vec![n / 2, 2] } else { vec![n] };
                self.add(to, &format!("reshape({name})"));
            }
            9 => {
                let axis = self.random.below(rank);
                let mut to = dims.clone();
                to[axis] *= 2;
                if to.iter().product::<u64>() > 4000 {
                    return;
                }
                self.add(to, &format!("concatenate({name}, {name}), dimensions={{{axis}}}"));
            }
            _ => {
                let n = 1 + self.random.below(40) as u64;
                let k = dims[rank - 1];
                let scalar = self.random.of(&["half", "zero"]);
                let w = self.add(vec![k, n], &format!("broadcast({scalar}), dimensions={{}}"));
                let w = self.values[w].name.clone();
                let mut to = dims.clone();
                to[rank - 1] = n;
                if to.iter().product::<u64>() > 4000 {
                    return;
                }
                let d = self.add(
                    to.clone(),
                    &format!("dot({name}, {w}), lhs_contracting_dims={{{}}}, rhs_contracting_dims={{0}}", rank - 1),
                );
                let d = self.values[d].name.clone();
                self.add(to, &format!("tanh({d})"));
            }
        }
    }
}

/// A module of about a dozen instructions: pointwise, moves, reductions, products; its last values are the results.
pub fn module(seed: u64) -> String {
    let mut m = Maker { random: Random::new(seed), text: String::new(), values: Vec::new() };
    for i in 0..2 {
        let rank = 1 + m.random.below(3);
        let dims = (0..rank).map(|_| m.random.of(&[1, 2, 3, 7, 16, 17, 20])).collect();
        m.add(dims, &format!("parameter({i})"));
    }
    for _ in 0..10 {
        m.step();
    }
    let last: Vec<usize> = (2..m.values.len()).rev().take(3).collect();
    let names = list(last.iter().map(|&i| m.values[i].name.clone()));
    let shapes = list(last.iter().map(|&i| shape(&m.values[i].dims)));
    format!(
        "HloModule m\nadd {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}}\n\
         max {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] maximum(a, b)\n}}\n\
         ENTRY e {{\n  zero = f32[] constant(0)\n  low = f32[] constant(-inf)\n  half = f32[] constant(0.5)\n{}  \
         ROOT out = ({shapes}) tuple({names})\n}}\n",
        m.text
    )
}
