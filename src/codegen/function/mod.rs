//! One kernel as LLVM text: loops, index arithmetic, loads and stores, vectors.
mod access;
mod address;
mod address_values;
mod eval;
mod stmts;

use super::value::{self, Val, value_type};
use super::{lines, portable};
use crate::diag::Result;
use crate::kernel::{self, BufId, ExprId, Kernel, Program, RegId, Stmt, VarId};
use crate::target::{MathType, Target};
use crate::tensor::DType;
use crate::util::id_vec::Id;
use std::collections::{HashMap, HashSet};

/// Rows, and bytes of a row, of each tile register; zeros for unused ones.
pub(super) type TileRegisterShapes = [(u64, u64); 8];

/// The value bound to a loop variable at the point of emission.
#[derive(Clone, Debug)]
enum Binding {
    /// The variable is not bound here.
    Unbound,
    /// The name of an `i64` LLVM value.
    Name(String),
    /// The constant value in an unrolled iteration.
    Constant(i64),
    /// The lane number: the variable of the open `Vector` loop.
    Lane,
}

/// Emitter of one LLVM function.
pub struct FunctionEmitter<'a> {
    program: &'a Program,
    pub(super) kernel: &'a Kernel,
    /// The target machine.
    pub target: &'a Target,
    allocas: String,
    body: String,
    /// The line number of each statement, if instructions carry them.
    lines: Option<HashMap<*const Stmt, u32>>,
    /// Line number of the statement being emitted.
    at: u32,
    next: usize,
    bindings: Vec<Binding>,
    pub(super) lane: Option<(VarId, u64)>,
    /// Number of active lanes in a masked loop; `None` outside of one.
    pub(super) valid: Option<u64>,
    memo: HashMap<ExprId, Val>,
    addresses: address_values::AddressValues,
    bases: HashMap<BufId, String>,
    base_text: String,
    slots: Vec<BufId>,
    /// Registers that hold computed values, not copies from memory; empty unless the arithmetic is portable.
    pub(super) computed: HashSet<RegId>,
    /// The distinct configurations of AMX tile registers, by number.
    pub(super) shapes: Vec<TileRegisterShapes>,
}

/// The LLVM function of a kernel, which takes buffer addresses from the closure, so that similar kernels can share it.
pub struct EmittedKernel {
    /// The function's text from the parameters on, without its name.
    pub text: String,
    /// Buffers in the order of the closure's words that hold their addresses, from the second word on.
    pub slots: Vec<BufId>,
}

impl<'a> FunctionEmitter<'a> {
    /// The kind of float arithmetic that the user requested.
    pub fn math_type(&self) -> MathType {
        self.program.reduced.precision.math
    }

    /// Emits `kernel` as a function with attribute group `group`; instructions carry lines if `marked`.
    pub fn emit(
        program: &'a Program,
        kernel: &'a Kernel,
        group: usize,
        marked: bool,
        target: &'a Target,
    ) -> Result<EmittedKernel> {
        let mut f = FunctionEmitter {
            program,
            kernel,
            target,
            allocas: String::new(),
            body: String::new(),
            lines: marked.then(|| kernel::statement_lines(kernel)),
            at: 1,
            next: 0,
            bindings: vec![Binding::Unbound; kernel.vars.len()],
            lane: None,
            valid: None,
            memo: HashMap::new(),
            addresses: address_values::AddressValues::default(),
            bases: HashMap::new(),
            base_text: String::new(),
            slots: Vec::new(),
            computed: HashSet::new(),
            shapes: Vec::new(),
        };
        if f.math_type().is_portable() {
            f.computed = portable::computed_registers(kernel);
        }
        f.registers();
        if let Some([first, last]) = kernel.range {
            f.allocas += "  %last = add i64 %end, -1\n";
            f.bindings[first.index()] = Binding::Name("%begin".to_string());
            f.bindings[last.index()] = Binding::Name("%last".to_string());
        }
        match kernel.chunks {
            Some(var) => f.emit_chunk_loop(var, "%begin", "%end", &kernel.body)?,
            None => f.emit_stmts(&kernel.body)?,
        }
        if !f.shapes.is_empty() {
            f.allocas += "  %shapes = alloca [64 x i8], align 64\n  %tiles = alloca i32\n  store i32 0, ptr %tiles\n";
            // what tiles hold would be saved wherever the system takes this thread from its processor
            f.push_line("call void @llvm.x86.tilerelease()");
        }
        let own = if marked { format!(" {}", lines::line_mark(0)) } else { String::new() };
        let text = format!(
            "(ptr %closure, i64 %begin, i64 %end) #{group}{own} {{\nentry:\n{}{}  br label %start\nstart:\n{}  ret void\n}}\n",
            f.allocas, f.base_text, f.body
        );
        Ok(EmittedKernel { text, slots: f.slots })
    }

    fn registers(&mut self) {
        for (id, reg) in self.kernel.regs.iter() {
            for at in 0..reg.count {
                self.allocas += &format!("  %r{}.{at} = alloca {}\n", id.0, value_type(reg.dtype, reg.lanes));
            }
        }
    }

    fn fresh(&mut self) -> String {
        self.next += 1;
        format!("%t{}", self.next)
    }

    pub(super) fn fresh_label(&mut self) -> String {
        self.next += 1;
        format!("l{}", self.next)
    }

    /// Begins a basic block with this label.
    pub(super) fn begin_block(&mut self, label: &str) {
        self.body += &format!("{label}:\n");
    }

    /// The type of a buffer's elements.
    pub(super) fn dtype_of(&self, buf: BufId) -> DType {
        self.program.buffers[buf].dtype
    }

    pub(super) fn push_line(&mut self, text: &str) {
        self.body += "  ";
        self.body += text;
        if self.lines.is_some() {
            self.body += ", ";
            self.body += &lines::line_mark(self.at);
        }
        self.body += "\n";
    }

    /// Emits the instruction `rhs` and returns its result, a value of this type.
    pub fn push_instruction(&mut self, rhs: &str, dtype: DType, lanes: u64) -> Val {
        let name = self.fresh();
        self.push_line(&format!("{name} = {rhs}"));
        Val { text: name, dtype, lanes }
    }

    /// A constant in every lane.
    pub fn constant(&self, dtype: DType, bits: u64, lanes: u64) -> Val {
        value::constant(dtype, bits, lanes)
    }

    /// Emits the extraction of the real and the imaginary part of a complex value.
    pub fn complex_parts(&mut self, x: &Val) -> (Val, Val) {
        let (ty, part) = (x.ty(), x.dtype.real_part());
        let re = self.push_instruction(&format!("extractvalue {ty} {}, 0", x.text), part, x.lanes);
        let im = self.push_instruction(&format!("extractvalue {ty} {}, 1", x.text), part, x.lanes);
        (re, im)
    }

    /// Emits a complex value with these real and imaginary parts.
    pub fn make_complex(&mut self, re: &Val, im: &Val) -> Val {
        let dtype = if re.dtype == DType::F64 { DType::C128 } else { DType::C64 };
        let (ty, part) = (value_type(dtype, re.lanes), re.ty());
        let half = self.push_instruction(&format!("insertvalue {ty} poison, {part} {}, 0", re.text), dtype, re.lanes);
        self.push_instruction(&format!("insertvalue {ty} {}, {part} {}, 1", half.text, im.text), dtype, re.lanes)
    }

    /// Applies `make` to values, once for the real and once for the imaginary parts where values are complex.
    fn by_part(&mut self, all: &[Val], make: &mut dyn FnMut(&mut Self, &[Val]) -> Val) -> Val {
        if !all.iter().any(|v| v.dtype.is_complex()) {
            return make(self, all);
        }
        let (re, im): (Vec<Val>, Vec<Val>) = all.iter().map(|v| self.complex_parts(v)).unzip();
        let (re, im) = (make(self, &re), make(self, &im));
        self.make_complex(&re, &im)
    }

    /// Broadcasts a scalar to this many lanes; a vector stays as it is.
    pub fn broadcast(&mut self, x: &Val, lanes: u64) -> Val {
        if x.lanes == lanes {
            return x.clone();
        }
        self.by_part(std::slice::from_ref(x), &mut |f, x| {
            let (x, dtype) = (&x[0], x[0].dtype);
            if x.is_constant() {
                return Val { text: format!("splat ({} {})", x.ty(), x.text), dtype, lanes };
            }
            let vector = value_type(dtype, lanes);
            let one = f.push_instruction(
                &format!("insertelement {vector} poison, {} {}, i64 0", x.ty(), x.text),
                dtype,
                lanes,
            );
            let zeros = format!("<{lanes} x i32> zeroinitializer");
            f.push_instruction(&format!("shufflevector {vector} {}, {vector} poison, {zeros}", one.text), dtype, lanes)
        })
    }

    /// Emits a shuffle that selects the lanes `picks` of a vector.
    pub fn shuffle(&mut self, x: &Val, picks: &[u64]) -> Val {
        self.by_part(std::slice::from_ref(x), &mut |f, x| {
            let (x, ty, lanes) = (&x[0], x[0].ty(), picks.len() as u64);
            if let [lane] = picks {
                return f.push_instruction(&format!("extractelement {ty} {}, i64 {lane}", x.text), x.dtype, 1);
            }
            let mask: Vec<String> = picks.iter().map(|i| format!("i32 {i}")).collect();
            let mask = format!("<{lanes} x i32> <{}>", mask.join(", "));
            f.push_instruction(&format!("shufflevector {ty} {}, {ty} poison, {mask}", x.text), x.dtype, lanes)
        })
    }

    /// Emits the concatenation of two vectors of one type.
    pub fn concat_lanes(&mut self, low: &Val, high: &Val) -> Val {
        let (ty, lanes) = (low.ty(), 2 * low.lanes);
        let mask = (0..lanes).map(|i| format!("i32 {i}")).collect::<Vec<_>>().join(", ");
        let text = format!("shufflevector {ty} {}, {ty} {}, <{lanes} x i32> <{mask}>", low.text, high.text);
        self.push_instruction(&text, low.dtype, lanes)
    }

    /// Emits a vector built from scalars.
    pub fn build_vector(&mut self, lanes: &[Val]) -> Val {
        if let [one] = lanes {
            return one.clone();
        }
        self.by_part(lanes, &mut |f, lanes| {
            let (dtype, count) = (lanes[0].dtype, lanes.len() as u64);
            let vector = value_type(dtype, count);
            let mut all = Val { text: "poison".to_string(), dtype, lanes: count };
            for (i, one) in lanes.iter().enumerate() {
                let rhs = format!("insertelement {vector} {}, {} {}, i64 {i}", all.text, one.ty(), one.text);
                all = f.push_instruction(&rhs, dtype, count);
            }
            all
        })
    }

    /// Stores a value on the stack and returns its address.
    pub fn spill_to_stack(&mut self, v: &Val) -> String {
        let slot = self.fresh();
        self.allocas += &format!("  {slot} = alloca {}\n", v.ty());
        self.push_line(&format!("store {} {}, ptr {slot}", v.ty(), v.text));
        slot
    }
}
