//! The functions of a self-test that draw arguments and compare arrays, each only where it is used, and the tables that they read.
use crate::codegen::info;
use crate::kernel::self_test::{ExpectedSums, HASH_FACTOR, HASH_START};
use crate::tensor::{DType, DTypeClass, Tensor};
use std::collections::BTreeSet;

/// Emitter of the functions and tables of a model's self-test.
pub(super) struct SelfTestEmitter<'a> {
    /// The prefix of symbols.
    name: &'a str,
    /// The LLVM text emitted so far.
    pub text: String,
    known: BTreeSet<String>,
}

impl SelfTestEmitter<'_> {
    pub(super) fn new(name: &str) -> SelfTestEmitter<'_> {
        SelfTestEmitter { name, text: String::new(), known: BTreeSet::new() }
    }

    /// The symbol of a helper function, which `write` emits on first use.
    fn function(&mut self, kind: &str, write: impl FnOnce(&str) -> String) -> String {
        let symbol = format!("{}.test.{kind}", self.name);
        if self.known.insert(symbol.clone()) {
            self.text += &write(&symbol);
        }
        symbol
    }

    /// The symbol of the function that fills an array with random numbers by splitmix64, as `run::arguments::random` does.
    pub(super) fn draw_function(&mut self, dtype: DType) -> String {
        self.function(&format!("draw.{}", dtype.name()), |symbol| draw_text(symbol, dtype))
    }

    /// The symbol of the function that compares the hash of an array's bytes.
    pub(super) fn hash_comparison(&mut self) -> String {
        self.function("hash", hash_text)
    }

    /// The symbol of the function that compares the block sums of an array.
    pub(super) fn sums_comparison(&mut self, dtype: DType) -> String {
        if dtype.bytes() == 1 {
            let table = format!("{}.test.values.{}", self.name, dtype.name());
            if self.known.insert(table.clone()) {
                info::emit_table(&mut self.text, &table, "i32", &byte_values(dtype));
            }
        }
        let name = self.name;
        self.function(&format!("sums.{}", dtype.name()), |symbol| sums_text(symbol, dtype, name))
    }

    /// Emits the bytes of a stored argument as a constant.
    pub(super) fn add_bytes(&mut self, symbol: &str, bytes: &[u8]) {
        info::emit_bytes(&mut self.text, symbol, bytes);
        self.text.truncate(self.text.trim_end().len());
        self.text += ", align 64\n";
    }

    /// Emits the table of an array's expected sums with their bounds; returns LLVM's type and the bits of the scale.
    pub(super) fn add_expected_sums_table(
        &mut self,
        symbol: &str,
        dtype: DType,
        sums: &ExpectedSums,
    ) -> (&'static str, i64) {
        let is_double = dtype == DType::F64;
        let bits = |v: f64| if is_double { v.to_bits() as i64 } else { i64::from((v as f32).to_bits() as i32) };
        // a bound is never rounded to less
        let above = |v: f64| if is_double { v.next_up() } else { f64::from((v as f32).next_up()) };
        let word = if is_double { "i64" } else { "i32" };
        let both = sums.sums.iter().flat_map(|s| [s.sum, above(s.bound)]);
        let rows: Vec<String> = both.map(|v| format!("{word} {}", bits(v))).collect();
        info::emit_table(&mut self.text, symbol, word, &rows);
        (word, bits(sums.scale))
    }
}

/// The f32 bits of each value of a type of one byte.
fn byte_values(dtype: DType) -> Vec<String> {
    let mask = ((1u32 << dtype.bits().min(8)) - 1) as u8;
    let tensor = Tensor::new(dtype, vec![256], (0..=255u8).map(|b| b & mask).collect::<Vec<u8>>());
    let bits = |i| (tensor.get_f64(i).unwrap_or(f64::NAN) as f32).to_bits() as i32;
    (0..256).map(|i| format!("i32 {}", bits(i))).collect()
}

/// The LLVM text of the function that draws random numbers of a type.
fn draw_text(symbol: &str, dtype: DType) -> String {
    let bytes = dtype.bytes();
    let bits = 8 * bytes;
    let store = match (dtype.class(), dtype) {
        (DTypeClass::Pred, _) => "  %v = and i64 %w, 1\n  %x = trunc i64 %v to i8\n  store i8 %x, ptr %p, align 1\n".into(),
        (_, DType::F32) => "  %v = lshr i64 %w, 40\n  %k = trunc i64 %v to i32\n  %f = uitofp i32 %k to float\n  %x = fmul float %f, 0x3E70000000000000\n  store float %x, ptr %p, align 4\n".into(),
        (_, DType::F64) => "  %v = lshr i64 %w, 40\n  %k = trunc i64 %v to i32\n  %f = uitofp i32 %k to double\n  %x = fmul double %f, 0x3E70000000000000\n  store double %x, ptr %p, align 8\n".into(),
        _ if bytes == 8 => "  %x = lshr i64 %w, 62\n  store i64 %x, ptr %p, align 8\n".to_string(),
        _ => format!("  %v = lshr i64 %w, 62\n  %x = trunc i64 %v to i{bits}\n  store i{bits} %x, ptr %p, align {bytes}\n"),
    };
    let [step, first, second] =
        [0x9E37_79B9_7F4A_7C15u64, 0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB].map(|n| n as i64);
    format!(
        "define internal void @{symbol}(ptr %to, i64 %n, i64 %seed) #1 {{
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i1, %body ]
  %state = phi i64 [ %seed, %entry ], [ %z, %body ]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %body, label %done
body:
  %z = add i64 %state, {step}
  %z1 = lshr i64 %z, 30
  %z2 = xor i64 %z, %z1
  %z3 = mul i64 %z2, {first}
  %z4 = lshr i64 %z3, 27
  %z5 = xor i64 %z3, %z4
  %z6 = mul i64 %z5, {second}
  %z7 = lshr i64 %z6, 31
  %w = xor i64 %z6, %z7
  %at = mul i64 %i, {bytes}
  %p = getelementptr i8, ptr %to, i64 %at
{store}  %i1 = add i64 %i, 1
  br label %head
done:
  ret void
}}
"
    )
}

/// The text of the function that hashes bytes.
fn hash_text(symbol: &str) -> String {
    format!(
        "define internal i1 @{symbol}(ptr %data, i64 %n, i32 %want) #1 {{
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i1, %body ]
  %hash = phi i32 [ {}, %entry ], [ %next, %body ]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %body, label %done
body:
  %p = getelementptr i8, ptr %data, i64 %i
  %byte = load i8, ptr %p, align 1
  %word = zext i8 %byte to i32
  %mixed = xor i32 %hash, %word
  %next = mul i32 %mixed, {HASH_FACTOR}
  %i1 = add i64 %i, 1
  br label %head
done:
  %same = icmp eq i32 %hash, %want
  ret i1 %same
}}
",
        HASH_START as i32
    )
}

/// The text that loads element `%i` of `%data` as the bits `%bits` of the type in which it is added.
fn load_text(dtype: DType, name: &str) -> String {
    let word = 8 * dtype.bytes();
    let place = format!("  %off = mul i64 %i, {}\n  %p = getelementptr i8, ptr %data, i64 %off\n", dtype.bytes());
    let load = match dtype {
        DType::F32 => "  %bits = load i32, ptr %p, align 1\n".to_string(),
        DType::F64 => "  %bits = load i64, ptr %p, align 1\n".to_string(),
        DType::BF16 => {
            "  %raw = load i16, ptr %p, align 1\n  %wide = zext i16 %raw to i32\n  %bits = shl i32 %wide, 16\n"
                .to_string()
        }
        // the exponent is moved by a multiplication with 2^112, which is exact for small numbers too
        DType::F16 => "  %raw = load i16, ptr %p, align 1
  %wide = zext i16 %raw to i32
  %size = and i32 %wide, 32767
  %sign = and i32 %wide, 32768
  %top = shl i32 %sign, 16
  %moved = shl i32 %size, 13
  %small = bitcast i32 %moved to float
  %large = fmul float %small, 0x46F0000000000000
  %finite = bitcast float %large to i32
  %full = icmp uge i32 %size, 31744
  %other = or i32 %moved, 2139095040
  %unsigned = select i1 %full, i32 %other, i32 %finite
  %bits = or i32 %unsigned, %top
"
        .to_string(),
        _ => format!(
            "  %raw = load i{word}, ptr %p, align 1\n  %wide = zext i{word} %raw to i64\n  %placed = mul i64 %wide, 4\n  %from = getelementptr i8, ptr @{name}.test.values.{}, i64 %placed\n  %bits = load i32, ptr %from, align 4\n",
            dtype.name()
        ),
    };
    place + &load
}

/// The text of the function that adds blocks of elements and compares each sum with its row of the table.
fn sums_text(symbol: &str, dtype: DType, name: &str) -> String {
    let (word, float, size, magnitude, infinity) = match dtype {
        DType::F64 => ("i64", "double", 8, i64::MAX, 0x7FF0_0000_0000_0000i64),
        _ => ("i32", "float", 4, i64::from(i32::MAX), 0x7F80_0000),
    };
    let load = load_text(dtype, name);
    format!(
        "define internal i1 @{symbol}(ptr %data, i64 %n, i64 %block, ptr %table, {word} %scale, i32 %classes) #1 {{
entry:
  %factor = bitcast {word} %scale to {float}
  br label %open
open:
  %at = phi i64 [ 0, %entry ], [ %end, %check ]
  %row = phi i64 [ 0, %entry ], [ %row1, %check ]
  %hash = phi i32 [ {start}, %entry ], [ %mix1, %check ]
  %good = phi i1 [ true, %entry ], [ %good1, %check ]
  %more = icmp ult i64 %at, %n
  br i1 %more, label %begin, label %close
begin:
  %far = add i64 %at, %block
  %inside = icmp ult i64 %far, %n
  %end = select i1 %inside, i64 %far, i64 %n
  br label %element
element:
  %i = phi i64 [ %at, %begin ], [ %i1, %element ]
  %sum = phi {float} [ 0x0000000000000000, %begin ], [ %sum1, %element ]
  %mix = phi i32 [ %hash, %begin ], [ %mix1, %element ]
{load}  %low = and {word} %bits, {magnitude}
  %odd = icmp uge {word} %low, {infinity}
  %nan = icmp ugt {word} %low, {infinity}
  %negative = icmp slt {word} %bits, 0
  %infinite = select i1 %negative, i32 3, i32 2
  %kind = select i1 %nan, i32 1, i32 %infinite
  %class = select i1 %odd, i32 %kind, i32 0
  %mixed = xor i32 %mix, %class
  %mix1 = mul i32 %mixed, {HASH_FACTOR}
  %x = bitcast {word} %bits to {float}
  %term = fmul {float} %x, %factor
  %added = fadd {float} %sum, %term
  %sum1 = select i1 %odd, {float} %sum, {float} %added
  %i1 = add i64 %i, 1
  %again = icmp ult i64 %i1, %end
  br i1 %again, label %element, label %check
check:
  %first = mul i64 %row, {pair}
  %pwant = getelementptr i8, ptr %table, i64 %first
  %second = add i64 %first, {size}
  %pbound = getelementptr i8, ptr %table, i64 %second
  %want = load {float}, ptr %pwant, align {size}
  %bound = load {float}, ptr %pbound, align {size}
  %row1 = add i64 %row, 1
  %above = fsub {float} %sum1, %want
  %below = fsub {float} %want, %sum1
  %ca = fcmp ole {float} %above, %bound
  %cb = fcmp ole {float} %below, %bound
  %near = and i1 %ca, %cb
  %good1 = and i1 %good, %near
  br label %open
close:
  %same = icmp eq i32 %hash, %classes
  %all = and i1 %good, %same
  ret i1 %all
}}
",
        start = HASH_START as i32,
        pair = 2 * size,
    )
}
