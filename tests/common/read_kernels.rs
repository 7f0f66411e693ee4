//! Programs of kernels as text: that of `kernel::print_program`, with what it leaves out said in lines before.
//!
//! ```text
//! arg f32[8]                  result f32[8]            state s32[] reads at 0
//! weights 32                  workspace 64             buffer b0 f32[8] Arg 0
//! kernel chunks v0 < 8
//!   reg r0 f32 x8 [2]
//!   for v1 < 4 Vector
//!     b1[v0*4 + v1] = add(b0[0], f32 1)
//! launch k0
//! ```
//!
//! Of a constant the bits are written; an op whose result has not the type that follows is `add:s32(x, y)`.
use tfaot::kernel::{
    Atom, BufId, Buffer, BufferLocation, Expr, ExprId, Index, Kernel, KernelId, LoopKind, Program, Reg, RegId, Step,
    Stmt, TileRows, TileSums, VarId, VariableSlot, tile_product,
};
use tfaot::scalar::{CompareKind, Direction, ScalarOp};
use tfaot::tensor::{DType, TensorInfo};

type Read<T> = Result<T, String>;

/// The program of a text.
pub fn program(text: &str) -> Read<Program> {
    let lines: Vec<(usize, &str)> = text
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with("//"))
        .map(|line| ((line.len() - line.trim_start().len()) / 2, line.trim()))
        .collect();
    let mut program = Program::default();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at].1;
        let mut words = Words { rest: line };
        let is_head = ["arg", "result", "state", "weights", "workspace", "buffer", "kernel"];
        let Some(word) = is_head.into_iter().find(|word| words.takes(&format!("{word} ")) || line == *word) else {
            break;
        };
        at += 1;
        match word {
            "arg" => program.args.push(array(&mut words)?),
            "result" => program.results.push(array(&mut words)?),
            "state" => program.state.push(variable(&mut words)?),
            "weights" => program.weights_bytes = words.number()?,
            "workspace" => program.workspace_bytes = words.number()?,
            "buffer" => drop(program.buffers.push(buffer(&mut words)?)),
            _ => {
                let kernel = kernel(&program, &mut words, &lines, &mut at)
                    .map_err(|e| format!("{}: {e}", lines[at.min(lines.len()) - 1].1))?;
                program.kernels.push(kernel);
            }
        }
    }
    program.steps = steps(&lines, &mut at, 0)?;
    if at < lines.len() { Err(format!("what is `{}`", lines[at].1)) } else { Ok(program) }
}

/// What is left of a line.
struct Words<'t> {
    rest: &'t str,
}

impl<'t> Words<'t> {
    fn takes(&mut self, word: &str) -> bool {
        self.rest = self.rest.trim_start();
        let Some(rest) = self.rest.strip_prefix(word) else { return false };
        self.rest = rest;
        true
    }

    fn needs(&mut self, word: &str) -> Read<()> {
        if self.takes(word) { Ok(()) } else { Err(format!("`{word}` expected before `{}`", self.rest)) }
    }

    fn while_(&mut self, is: impl Fn(char) -> bool) -> &'t str {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c| !is(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn name(&mut self) -> &'t str {
        self.while_(|c| c.is_alphanumeric() || c == '-' || c == '_')
    }

    fn integer(&mut self) -> Read<i64> {
        self.rest = self.rest.trim_start();
        let negative = self.takes("-");
        let number = self.while_(|c| c.is_ascii_digit());
        let number: i64 = number.parse().map_err(|_| format!("a number expected before `{}`", self.rest))?;
        Ok(if negative { -number } else { number })
    }

    fn number(&mut self) -> Read<u64> {
        self.integer().and_then(|n| u64::try_from(n).map_err(|_| format!("{n} is negative")))
    }

    fn id(&mut self, letter: &str) -> Read<u32> {
        self.needs(letter)?;
        self.number().map(|n| n as u32)
    }

    fn dtype(&mut self) -> Read<DType> {
        let name = self.while_(char::is_alphanumeric);
        DType::parse(name).ok_or_else(|| format!("no type `{name}`"))
    }
}

fn array(words: &mut Words) -> Read<TensorInfo> {
    let (dtype, mut dims) = (words.dtype()?, Vec::new());
    words.needs("[")?;
    while !words.takes("]") {
        dims.push(words.number()?);
        words.takes(",");
    }
    let name = || "x".to_string();
    Ok(TensorInfo { name: name(), called: None, field: name(), dtype, dims })
}

fn variable(words: &mut Words) -> Read<VariableSlot> {
    let info = array(words)?;
    let changed = words.name() == "changes";
    words.needs("at")?;
    Ok(VariableSlot { info, offset: words.number()?, changed })
}

fn buffer(words: &mut Words) -> Read<Buffer> {
    words.id("b")?;
    let info = array(words)?;
    let elements = info.elements();
    let place = match words.name() {
        "Arg" => BufferLocation::Arg(words.number()? as usize),
        "Result" => BufferLocation::Result(words.number()? as usize),
        "Weights" => BufferLocation::Weights(words.number()?),
        "State" => BufferLocation::State(words.number()?),
        "Workspace" => BufferLocation::Workspace(words.number()?),
        "Stack" => BufferLocation::Stack,
        other => return Err(format!("no place `{other}`")),
    };
    Ok(Buffer { dtype: info.dtype, elements, place })
}

/// The kernel whose head was read, and its lines.
fn kernel(program: &Program, head: &mut Words, lines: &[(usize, &str)], at: &mut usize) -> Read<Kernel> {
    let mut reader = Reader { program, kernel: Kernel::default() };
    if head.takes("chunks") {
        reader.kernel.chunks = Some(reader.loop_variable(head)?);
    }
    while *at < lines.len() && lines[*at].1.starts_with("reg ") {
        let mut words = Words { rest: &lines[*at].1[4..] };
        words.id("r")?;
        let dtype = words.dtype()?;
        words.needs("x")?;
        let lanes = words.number()?;
        words.needs("[")?;
        let count = words.number()?;
        reader.kernel.regs.push(Reg { dtype, lanes, count });
        *at += 1;
    }
    reader.kernel.body = reader.statements(lines, at, 1)?;
    Ok(reader.kernel)
}

struct Reader<'p> {
    program: &'p Program,
    kernel: Kernel,
}

impl Reader<'_> {
    /// `v2 < 8`.
    fn loop_variable(&mut self, words: &mut Words) -> Read<VarId> {
        let var = VarId(words.id("v")?);
        words.needs("<")?;
        let extent = words.number()?;
        while self.kernel.vars.len() <= var.0 as usize {
            self.kernel.vars.push(1);
        }
        self.kernel.vars[var] = extent;
        Ok(var)
    }

    fn statements(&mut self, lines: &[(usize, &str)], at: &mut usize, depth: usize) -> Read<Vec<Stmt>> {
        let mut all = Vec::new();
        while *at < lines.len() && lines[*at].0 >= depth {
            let mut words = Words { rest: lines[*at].1 };
            *at += 1;
            let stmt = if words.takes("for ") {
                let var = self.loop_variable(&mut words)?;
                let kind = match words.name() {
                    "Seq" => LoopKind::Seq,
                    "Unroll" => LoopKind::Unroll,
                    "Vector" => LoopKind::Vector,
                    _ => {
                        words.needs("(")?;
                        LoopKind::Masked(words.number()?)
                    }
                };
                Stmt::For { var, kind, body: self.statements(lines, at, depth + 1)? }
            } else if words.takes("let ") {
                let var = self.loop_variable(&mut words)?;
                words.needs("=")?;
                let value = self.index(&mut words)?;
                Stmt::Let { var, value, body: self.statements(lines, at, depth + 1)? }
            } else if words.takes("if ") {
                let cond = self.expr(&mut words)?.0;
                Stmt::If { cond, body: self.statements(lines, at, depth + 1)? }
            } else if words.takes("while ") {
                let cond = self.expr(&mut words)?.0;
                Stmt::While { cond, body: self.statements(lines, at, depth + 1)? }
            } else if words.takes("tiles ") {
                self.tiles(&mut words, lines, at, depth + 1)?
            } else if words.takes("release") {
                Stmt::Release
            } else if words.rest.starts_with('r') {
                let (reg, at) = self.register(&mut words)?;
                words.needs("=")?;
                Stmt::Set { reg, at, value: self.expr(&mut words)?.0 }
            } else {
                let prefetch = words.takes("prefetch ");
                let buf = BufId(words.id("b")?);
                let index = self.bracketed(&mut words)?;
                match prefetch {
                    true => Stmt::Prefetch { buf, index },
                    false => {
                        words.needs("=")?;
                        Stmt::Store { buf, index, value: self.expr(&mut words)?.0 }
                    }
                }
            };
            all.push(stmt);
        }
        Ok(all)
    }

    /// `b2[at] = b0 by b1[first] by 64, 2 across, 32 terms for v0 < 3`, and a line `16 rows [first] by 96` for each tile of rows.
    fn tiles(&mut self, words: &mut Words, lines: &[(usize, &str)], next: &mut usize, depth: usize) -> Read<Stmt> {
        let to = BufId(words.id("b")?);
        let at = self.bracketed(words)?;
        words.needs("=")?;
        let left = BufId(words.id("b")?);
        words.needs("by")?;
        let right = BufId(words.id("b")?);
        let first = |reader: &mut Self, words: &mut Words| reader.bracketed(words);
        let types = [left, right].map(|buf| self.program.buffers[buf].dtype);
        let product = tile_product(types[0], types[1]).ok_or_else(|| format!("no tiles of {types:?}"))?;
        let mut sums = TileSums {
            product,
            loops: Vec::new(),
            terms: 0,
            left,
            rows: Vec::new(),
            right,
            first: Index::default(),
            stride: 0,
            across: 0,
            to,
            at,
            adds: false,
        };
        // the variables of the loops are read first, as the index may name them
        if let Some((_, loops)) = words.rest.split_once("for ") {
            let mut loops = Words { rest: loops };
            while !loops.rest.trim().is_empty() {
                sums.loops.push(self.loop_variable(&mut loops)?);
                loops.takes(",");
            }
        }
        sums.first = first(self, words)?;
        words.needs("by")?;
        sums.stride = words.number()?;
        words.needs(",")?;
        sums.across = words.number()?;
        words.needs("across,")?;
        sums.terms = words.number()?;
        while *next < lines.len() && lines[*next].0 >= depth {
            let mut row = Words { rest: lines[*next].1 };
            let count = row.number()?;
            row.needs("rows")?;
            let first = self.bracketed(&mut row)?;
            row.needs("by")?;
            sums.rows.push(TileRows { first, stride: row.number()?, count });
            *next += 1;
        }
        Ok(Stmt::Tiles(Box::new(sums)))
    }

    fn bracketed(&mut self, words: &mut Words) -> Read<Index> {
        words.needs("[")?;
        let index = self.index(words)?;
        words.needs("]")?;
        Ok(index)
    }

    fn register(&mut self, words: &mut Words) -> Read<(RegId, Index)> {
        let reg = RegId(words.id("r")?);
        Ok((reg, self.bracketed(words)?))
    }

    fn index(&mut self, words: &mut Words) -> Read<Index> {
        let mut sum = Index::default();
        loop {
            let mut term = self.atom(words)?;
            if words.takes("*") {
                term = term.scale(words.integer()?);
            }
            sum = sum.add(&term);
            if !words.takes("+") {
                return Ok(sum);
            }
        }
    }

    fn atom(&mut self, words: &mut Words) -> Read<Index> {
        if words.takes("(") {
            let inside = Box::new(self.index(words)?);
            words.needs(")")?;
            let divides = words.takes("/");
            if !divides {
                words.needs("%")?;
            }
            let by = words.integer()?;
            return Ok(Index::atom(if divides { Atom::Div(inside, by) } else { Atom::Rem(inside, by) }));
        }
        if words.takes("clamp(") {
            let inside = Box::new(self.index(words)?);
            words.needs(",")?;
            let low = words.integer()?;
            words.needs(",")?;
            let high = words.integer()?;
            words.needs(")")?;
            return Ok(Index::atom(Atom::Clamp(inside, low, high)));
        }
        if words.takes("value(") {
            let value = self.expr(words)?.0;
            words.needs(")")?;
            return Ok(Index::atom(Atom::Value(value)));
        }
        if words.rest.trim_start().starts_with('v') {
            return Ok(Index::var(VarId(words.id("v")?)));
        }
        words.integer().map(Index::constant)
    }

    /// An expression and its type.
    fn expr(&mut self, words: &mut Words) -> Read<(ExprId, DType)> {
        let (expr, dtype) = self.parsed(words)?;
        Ok((self.kernel.exprs.push(expr), dtype))
    }

    fn parsed(&mut self, words: &mut Words) -> Read<(Expr, DType)> {
        words.rest = words.rest.trim_start();
        let of_buffer = |program: &Program, buf| program.buffers.get(buf).map_or(DType::F32, |b| b.dtype);
        let of_register = |kernel: &Kernel, reg| kernel.regs.get(reg).map_or(DType::F32, |r| r.dtype);
        let next = |rest: &str, letter: char| {
            rest.strip_prefix(letter).is_some_and(|r| r.starts_with(|c: char| c.is_ascii_digit()))
        };
        if words.takes("word ") {
            let buf = BufId(words.id("b")?);
            return Ok((Expr::Word(buf, self.bracketed(words)?), DType::U32));
        }
        if words.takes("fold ") {
            let op = scalar_op(words.name())?;
            let (reg, at) = self.register(words)?;
            return Ok((Expr::Fold(op, reg, at), of_register(&self.kernel, reg)));
        }
        if words.takes("within(") {
            let index = self.index(words)?;
            words.needs(",")?;
            let low = words.integer()?;
            words.needs(",")?;
            let high = words.integer()?;
            words.needs(")")?;
            return Ok((Expr::Within(index, low, high), DType::Pred));
        }
        if next(words.rest, 'b') && !words.rest.starts_with("bf16") {
            let buf = BufId(words.id("b")?);
            return Ok((Expr::Load(buf, self.bracketed(words)?), of_buffer(self.program, buf)));
        }
        if next(words.rest, 'r') {
            let (reg, at) = self.register(words)?;
            let dtype = of_register(&self.kernel, reg);
            if words.takes(".") {
                let first = words.number()?;
                words.needs("..")?;
                return Ok((Expr::Lanes(reg, at, first, words.number()? - first), dtype));
            }
            return Ok((Expr::Reg(reg, at), dtype));
        }
        let name = words.name();
        if let Some(dtype) = DType::parse(name) {
            if words.takes("(") {
                let index = self.index(words)?;
                words.needs(")")?;
                return Ok((Expr::Number(index, dtype), dtype));
            }
            return Ok((Expr::Const(dtype, words.number()?), dtype));
        }
        let op = scalar_op(name)?;
        let said = if words.takes(":") { Some(words.dtype()?) } else { None };
        words.needs("(")?;
        let (mut args, mut types) = (Vec::new(), Vec::new());
        while !words.takes(")") {
            let (arg, dtype) = self.expr(words)?;
            args.push(arg);
            types.push(dtype);
            words.takes(",");
        }
        let dtype = said.unwrap_or_else(|| op.result(&types));
        Ok((Expr::Op(op, args, dtype), dtype))
    }
}

fn scalar_op(name: &str) -> Read<ScalarOp> {
    match name {
        "less" => Ok(ScalarOp::Compare(Direction::Lt, CompareKind::Partial)),
        _ => ScalarOp::parse(name).ok_or_else(|| format!("no op `{name}`")),
    }
}

fn steps(lines: &[(usize, &str)], at: &mut usize, depth: usize) -> Read<Vec<Step>> {
    let mut all = Vec::new();
    while *at < lines.len() && lines[*at].0 == depth {
        let mut words = Words { rest: lines[*at].1 };
        if ["do", "and"].contains(&words.rest) {
            break;
        }
        *at += 1;
        all.push(if words.takes("launch ") {
            Step::Launch(KernelId(words.id("k")?))
        } else if words.takes("while ") {
            let pred = BufId(words.id("b")?);
            let most_rounds = if words.takes("at most") { Some(words.number()?) } else { None };
            let cond = steps(lines, at, depth + 1)?;
            *at += 1;
            Step::While { cond, pred, body: steps(lines, at, depth + 1)?, most_rounds }
        } else if words.takes("branch ") {
            words.number()?;
            words.needs("of")?;
            let selector = BufId(words.id("b")?);
            let mut branches = vec![steps(lines, at, depth + 1)?];
            while *at < lines.len() && lines[*at].0 == depth && lines[*at].1.starts_with("branch ") {
                *at += 1;
                branches.push(steps(lines, at, depth + 1)?);
            }
            Step::Branch { selector, branches }
        } else {
            words.needs("together")?;
            let mut parts = vec![steps(lines, at, depth + 1)?];
            while *at < lines.len() && lines[*at] == (depth, "and") {
                *at += 1;
                parts.push(steps(lines, at, depth + 1)?);
            }
            Step::Together(parts)
        });
    }
    Ok(all)
}
