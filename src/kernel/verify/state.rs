//! Rule k13: of the state. That variables which no call changes are never stored to is seen where stores are.
use super::Fault;
use crate::kernel::{BufferAccess, BufferLocation, Program};
use std::collections::BTreeSet;

/// Checks that variables do not overlap, that each buffer of the state is a whole variable, no two the same, and that changed variables
/// are written.
pub fn check_state(program: &Program) -> Result<(), Fault> {
    let filled = program.state.iter().filter(|v| v.info.bytes() > 0);
    let mut end = 0;
    for v in filled.clone() {
        if v.offset < end {
            return Err(format!("k13: `{}` begins at {} before {end}", v.info.name, v.offset));
        }
        end = v.end_offset();
    }
    let mut taken = BTreeSet::new();
    for (b, buffer) in program.buffers.iter() {
        let BufferLocation::State(at) = buffer.place else { continue };
        let bytes = super::bytes(program, b);
        if bytes > 0
            && !filled.clone().any(|v| v.offset == at && v.info.bytes() == bytes && v.info.dtype == buffer.dtype)
        {
            return Err(format!("k13: b{} is no variable", b.0));
        }
        if bytes > 0 && !taken.insert(at) {
            return Err(format!("k13: b{} is a variable that another buffer is", b.0));
        }
    }
    let stored = BufferAccess::of_steps(program, &program.steps).written;
    let offset = |b: &crate::kernel::BufId| match program.buffers[*b].place {
        BufferLocation::State(at) => Some(at),
        _ => None,
    };
    let places: BTreeSet<u64> = stored.iter().filter_map(offset).collect();
    match filled.clone().find(|v| v.changed && !places.contains(&v.offset)) {
        Some(v) => Err(format!("k13: `{}` never gets its new value", v.info.name)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::kernel::state::lay_out_variables;
    use crate::kernel::{Buffer, BufferLocation, Expr, Index, Kernel, Program, Step, Stmt, verify};
    use crate::tensor::{DType, TensorInfo};

    /// Two variables of one number each, of which a call changes the second.
    fn program() -> Program {
        let info = |name: &str| TensorInfo {
            name: name.to_string(),
            called: None,
            field: name.to_string(),
            dtype: DType::S32,
            dims: vec![],
        };
        let state = lay_out_variables([(info("a"), false), (info("b"), true)]);
        let mut p = Program { state, ..Program::default() };
        let buffer = |at| Buffer { dtype: DType::S32, elements: 1, place: BufferLocation::State(at) };
        let (a, b) = (p.buffers.push(buffer(0)), p.buffers.push(buffer(4)));
        let mut k = Kernel::default();
        let value = k.add_expr(Expr::Load(a, Index::default()));
        k.body = vec![Stmt::Store { buf: b, index: Index::default(), value }];
        p.steps = vec![Step::Launch(p.kernels.push(k))];
        p
    }

    #[test]
    fn each_offence_is_found() {
        verify(&program()).expect("it is sound");
        let offences: [(&str, fn(&mut Program)); 6] = [
            ("no call changes it", |p| p.state[1].changed = false),
            ("never gets its new value", |p| p.state[0].changed = true),
            ("begins at 2 before 4", |p| p.state[1].offset = 2),
            ("b1 is no variable", |p| p.buffers.values_mut().nth(1).expect("b1").place = BufferLocation::State(8)),
            ("b1 is no variable", |p| p.buffers.values_mut().nth(1).expect("b1").dtype = DType::F32),
            ("another buffer is", |p| p.buffers.values_mut().nth(1).expect("b1").place = BufferLocation::State(0)),
        ];
        for (told, spoil) in offences {
            let mut p = program();
            spoil(&mut p);
            let said = verify(&p).expect_err(told).to_string();
            assert!(said.contains("k13") && said.contains(told), "{said}");
        }
    }
}
