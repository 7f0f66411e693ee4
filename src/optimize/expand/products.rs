//! Products whose result holds less than their factors do, such as integers of floats: the product is made in the type of the
//! factors, and then converted.
use super::expand_with;
use crate::diag::Result;
use crate::hlo::{Module, Op, Shape};
use crate::optimize::rewrite::{Changed, rewrite};

/// Replaces `dot` and `convolution` with a result type that products do not compute directly.
pub fn expand(module: &mut Module) -> Result<Changed> {
    rewrite(module, |editor, id| {
        let op = editor.op(id).clone();
        let (Op::Dot(_) | Op::Convolution(_)) = op else { return Ok(None) };
        let [x, y] = editor.operands(id)[..] else { return Ok(None) };
        let (Some(x), Some(y), Some(shape)) = (editor.dtype(x), editor.dtype(y), editor.array(id).cloned()) else {
            return Ok(None);
        };
        let product = x.product_type(y, shape.dtype);
        if product == shape.dtype {
            return Ok(None);
        }
        expand_with(editor, id, |b, operands| {
            let wide = b.push(op, operands, Shape::array(product, shape.dims.clone()));
            Some(b.convert(wide, shape.dtype))
        })
    })
}
