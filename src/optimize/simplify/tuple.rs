//! Rules whose root is `tuple` or `get-tuple-element`.
use crate::hlo::{InstId, Literal, Op};
use crate::optimize::rewrite::Editor;

/// Part `index` of what is known part by part.
pub fn tuple_element(editor: &mut Editor, id: InstId, index: usize) -> Option<InstId> {
    let whole = editor.operand(id, 0);
    match editor.op(whole) {
        // part(tuple(a, b), 1) = b
        Op::Tuple => editor.operands(whole).get(index).copied(),
        // part(constant (a, b), 1) = constant b
        Op::Constant(Literal::Tuple(parts)) => {
            let literal = parts.get(index)?.clone();
            let shape = editor.shape(id).clone();
            Some(editor.add_instruction_with_shape(Op::Constant(literal), &[], shape))
        }
        _ => None,
    }
}

/// tuple(part(x, 0), part(x, 1), …) = x
pub fn simplify_rebuilt_tuple(editor: &mut Editor, id: InstId) -> Option<InstId> {
    let parts = editor.operands(id);
    let source = |(i, &p): (usize, &InstId)| match editor.op(p) {
        Op::GetTupleElement(index) if *index == i => Some(editor.operand(p, 0)),
        _ => None,
    };
    let whole = source((0, parts.first()?))?;
    let all = parts.iter().enumerate().all(|part| source(part) == Some(whole));
    (all && editor.shape(whole).same_type_and_dims(editor.shape(id))).then_some(whole)
}
