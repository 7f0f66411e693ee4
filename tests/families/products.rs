//! Matrix products: `contraction` of every layout, `matrix_vector`, `narrow` (few columns, small types), `byte_products` with sums of 32 bits.
use super::common::random::Random;
use super::text::{Case, Fill, Rule, Text, Val, list, some, sum_bound};
use tfaot::tensor::{DType, DTypeClass};

/// How large the axes of a product are.
pub struct Sizes {
    pub batch: Vec<u64>,
    pub rows: Vec<u64>,
    pub sum: Vec<u64>,
    pub columns: Vec<u64>,
}

/// Products with axes in any order on either side, several of a kind, constant or not, with epilogues.
pub fn contraction(r: &mut Random) -> Case {
    let most = |r: &mut Random| r.of(&[20, 40, 80, 130]);
    let (m, k, n) = (most(r), r.of(&[20, 70, 130, 400]), most(r));
    let axes = |r: &mut Random, most: u64| -> Vec<u64> {
        match r.below(8) {
            0 => vec![],
            1 => vec![some(r, 6), some(r, most / 4)],
            _ => vec![some(r, most)],
        }
    };
    let batch = match r.below(4) {
        0 => vec![some(r, 5)],
        1 => vec![some(r, 3), some(r, 4)],
        _ => vec![],
    };
    let mut sizes = Sizes { batch, rows: axes(r, m), sum: axes(r, k), columns: axes(r, n) };
    if r.below(40) == 0 {
        let which = r.below(3);
        [&mut sizes.rows, &mut sizes.sum, &mut sizes.columns][which].push(0);
    }
    let dtype = r.of(&[DType::F32, DType::F32, DType::F32, DType::F32, DType::F64, DType::S32, DType::C64]);
    product(r, [dtype; 3], &sizes)
}

/// A row or a column on one side.
pub fn matrix_vector(r: &mut Random) -> Case {
    let (long, k) = (some(r, 1100), some(r, 600));
    let (rows, columns) = if r.below(3) == 0 { (vec![long], vec![]) } else { (vec![], vec![long]) };
    let batch = if r.below(5) == 0 { vec![some(r, 3)] } else { vec![] };
    let dtype = r.of(&[DType::F32, DType::F32, DType::F32, DType::F64, DType::BF16]);
    product(r, [dtype; 3], &Sizes { batch, rows, sum: vec![k], columns })
}

/// Few columns, few terms, and types that are summed in a wider one.
pub fn narrow(r: &mut Random) -> Case {
    let sizes = Sizes {
        batch: if r.below(4) == 0 { vec![some(r, 4)] } else { vec![] },
        rows: vec![some(r, 200)],
        sum: vec![some(r, 300)],
        columns: vec![1 + r.below(9) as u64],
    };
    use DType::*;
    let dtype = r.of(&[F32, F32, F32, F16, BF16, S8, U8, S16, U16, S64, F64]);
    product(r, [dtype; 3], &sizes)
}

/// Bytes with and without a sign on either side, or integers of 16 bits, and sums of 32 bits.
pub fn byte_products(r: &mut Random) -> Case {
    let step = r.of(&[4, 4, 4, 1]);
    let sum = step * some(r, 120);
    let sizes = Sizes {
        batch: if r.below(5) == 0 { vec![some(r, 3)] } else { vec![] },
        rows: vec![some(r, 60)],
        sum: if r.below(6) == 0 { vec![some(r, 3), sum] } else { vec![sum] },
        columns: vec![some(r, 90)],
    };
    let bytes = [DType::S8, DType::U8];
    let types = match r.below(6) {
        0 => [DType::S16, DType::S16, DType::S32],
        _ => [r.of(&bytes), r.of(&bytes), DType::S32],
    };
    product(r, types, &sizes)
}

/// A side of a product: its axes in some order, and where each kind has come to lie.
pub struct Side {
    pub val: Val,
    pub batch: Vec<usize>,
    pub free: Vec<u64>,
    pub sum: Vec<usize>,
}

pub fn side(t: &mut Text, r: &mut Random, dtype: DType, sizes: &Sizes, free: &[u64], how: (Fill, bool)) -> Side {
    // kinds: 0 batch, 1 free, 2 sum
    let kinds = [(0, &sizes.batch[..]), (1, free), (2, &sizes.sum[..])];
    let mut axes: Vec<(usize, usize, u64)> =
        kinds.into_iter().flat_map(|(kind, dims)| dims.iter().enumerate().map(move |(i, &n)| (kind, i, n))).collect();
    if r.below(3) == 0 {
        for i in (1..axes.len()).rev() {
            axes.swap(i, r.below(i + 1));
        }
    } else if r.below(2) == 0 {
        // sum before free, as a right side has it
        axes.sort_by_key(|a| (a.0 != 0, a.0 == 1, a.1));
    }
    let dims: Vec<u64> = axes.iter().map(|a| a.2).collect();
    let small = dims.iter().product::<u64>() < 20_000;
    let val = if how.1 && small { t.constant(r, dtype, &dims) } else { t.param(dtype, &dims, how.0) };
    let of = |kind: usize| -> Vec<usize> {
        let mut found: Vec<(usize, usize)> =
            axes.iter().enumerate().filter(|(_, a)| a.0 == kind).map(|(at, a)| (a.1, at)).collect();
        found.sort_unstable();
        found.into_iter().map(|f| f.1).collect()
    };
    // free axes come out in the order in which they lie
    let free: Vec<u64> = axes.iter().filter(|a| a.0 == 1).map(|a| a.2).collect();
    Side { val, batch: of(0), free, sum: of(2) }
}

/// A product of sides of these types, and its own type.
fn product(r: &mut Random, [left_type, right_type, dtype]: [DType; 3], sizes: &Sizes) -> Case {
    let mut t = Text::default();
    let floats = matches!(dtype.class(), DTypeClass::Float | DTypeClass::Complex);
    let exact = !floats || r.below(3) > 0 || dtype.bits() < 32;
    let fill = if exact { Fill::Quarters } else { Fill::Plain };
    let terms: u64 = sizes.sum.iter().product();
    // complex products are four each
    let slack = if exact { 0.0 } else { sum_bound(dtype, terms, 8.0) };
    let rule = Rule::new(exact && dtype.bits() >= 32 || !floats, slack);
    let constant = r.below(3);
    let left = side(&mut t, r, left_type, sizes, &sizes.rows, (fill_of(left_type, fill), false));
    let right = side(&mut t, r, right_type, sizes, &sizes.columns, (fill_of(right_type, fill), constant > 0));
    let dims = [&sizes.batch[..], &left.free, &right.free].concat();
    let mut lists =
        format!("lhs_contracting_dims={{{}}}, rhs_contracting_dims={{{}}}", list(left.sum), list(right.sum));
    if !sizes.batch.is_empty() {
        lists += &format!(", lhs_batch_dims={{{}}}, rhs_batch_dims={{{}}}", list(left.batch), list(right.batch));
    }
    let y = t.op(dtype, &dims, format_args!("dot({}, {}), {lists}", left.val.name, right.val.name));
    epilogue(&mut t, r, &y, rule);
    t.finish()
}

/// Fill for arrays of a type where others of a module are filled with `fill`: integers of 8 and 16 bits with the least and the largest ones
/// among them.
pub fn fill_of(dtype: DType, fill: Fill) -> Fill {
    if matches!(dtype, DType::S8 | DType::U8 | DType::S16) { Fill::Corners } else { fill }
}

/// What may follow a product or a convolution, whose last axis is that of its channels.
pub fn epilogue(t: &mut Text, r: &mut Random, y: &Val, rule: Rule) {
    let (dtype, dims) = (y.dtype, y.dims.clone());
    let mut last = y.clone();
    let exact = rule == Rule::Bits;
    let mut rule = rule;
    if let Some((axis, &n)) = dims.iter().enumerate().next_back()
        && r.below(2) == 0
    {
        let bias = t.constant(r, dtype, &[n]);
        let bias = t.broadcast(&bias, &dims, &[axis]);
        last = t.binary("add", &last, &bias);
    }
    if r.below(4) == 0 {
        let other = t.param(dtype, &dims, Fill::Quarters);
        last = t.binary("add", &last, &other);
    }
    if !dtype.is_complex() && r.below(3) == 0 {
        let zero = t.splat(dtype, &dims, "0");
        last = t.binary("maximum", &last, &zero);
    } else if dtype.is_float() && dtype.bits() >= 32 && exact && r.below(4) == 0 {
        let op = r.of(&["tanh", "logistic", "exponential"]);
        let small = t.splat(dtype, &dims, "0.125");
        last = t.binary("multiply", &last, &small);
        last = t.unary(op, &last);
        // so long that it stands in a loop over the tile
        if r.below(2) == 0 {
            last = ["tanh", "logistic", "tanh"].iter().fold(last, |x, op| t.unary(op, &x));
        }
        rule = Rule::Close(0.0);
    }
    match r.below(5) {
        0 if dims.len() > 1 => {
            let perm: Vec<usize> = (0..dims.len()).rev().collect();
            let turned: Vec<u64> = perm.iter().map(|&p| dims[p]).collect();
            last = t.op(dtype, &turned, format_args!("transpose({}), dimensions={{{}}}", last.name, list(perm)));
        }
        1 if dims.len() > 1 => {
            let whole = dims.iter().product::<u64>();
            last = t.op(dtype, &[whole], format_args!("reshape({})", last.name));
        }
        2 if y.name != last.name => t.result(y, if exact { Rule::Bits } else { rule }),
        _ => {}
    }
    t.result(&last, rule);
}
