//! Payloads of instructions. Axes are `usize`, and valid in a verified module.
use super::proto::unescape;
use super::size::{SignedSize, SizeRepr};
use super::text::parse_shapes;
use super::{CompId, Shape};
use crate::diag::Result;

/// Window parameters along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WindowDim<D: SizeRepr = u64> {
    /// Number of window elements.
    pub size: D,
    /// Step between two windows.
    pub stride: D,
    /// Padding before the first element; negative padding crops.
    pub pad_low: D::SignedSize,
    /// Padding behind the last element; negative padding crops.
    pub pad_high: D::SignedSize,
    /// Base dilation: 1 + holes between elements of the operand.
    pub lhs_dilate: D,
    /// Window dilation: 1 + holes between elements of the window.
    pub rhs_dilate: D,
    /// Whether the window is applied in reverse.
    pub reversal: bool,
}

impl<D: SizeRepr> Default for WindowDim<D> {
    fn default() -> Self {
        let (one, zero) = (D::from(1), D::SignedSize::from(0));
        WindowDim {
            size: one,
            stride: one,
            pad_low: zero,
            pad_high: zero,
            lhs_dilate: one,
            rhs_dilate: one,
            reversal: false,
        }
    }
}

/// Size of `n` elements with dilation holes between them; `None` on overflow.
fn dilated_size<D: SizeRepr>(n: D, by: D) -> Option<D> {
    if by.is_one() {
        return Some(n);
    }
    // One hole less than there are elements, and none if there is no element.
    Some(n.checked_mul(by)?.saturating_sub(by.saturating_sub(D::from(1))))
}

impl<D: SizeRepr> WindowDim<D> {
    /// Whether window `i` covers exactly element `i`.
    pub fn is_identity(&self) -> bool {
        let (one, zero) = (D::from(1), D::SignedSize::from(0));
        [self.size, self.stride, self.lhs_dilate] == [one; 3] && [self.pad_low, self.pad_high] == [zero; 2]
    }
    /// Number of windows over `n` elements; `None` on overflow.
    pub fn output_size(&self, n: D) -> Option<D> {
        let base = dilated_size(n, self.lhs_dilate)?.signed()?;
        let base = base.checked_add(self.pad_low)?.checked_add(self.pad_high)?;
        if self.stride == D::from(0) {
            return Some(D::from(0));
        }
        // Number of strides that fit between the first window and the last, plus the first itself.
        let room = base.checked_sub(self.span()?.signed()?)?.checked_add(self.stride.signed()?)?;
        D::not_negative(room).checked_div(self.stride)
    }
    /// Number of neighboring elements that a window spans, dilation included; `None` on overflow.
    pub fn span(&self) -> Option<D> {
        dilated_size(self.size, self.rhs_dilate)
    }
}

/// Dimension numbers of a `dot`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DotDims {
    /// Batch axes of the left operand.
    pub lhs_batch: Vec<usize>,
    /// Batch axes of the right operand, in the same order.
    pub rhs_batch: Vec<usize>,
    /// Contracted axes of the left operand.
    pub lhs_contracting: Vec<usize>,
    /// Contracted axes of the right operand, in the same order.
    pub rhs_contracting: Vec<usize>,
}

/// Dimension numbers, window and group counts of a `convolution`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConvDims<D: SizeRepr = u64> {
    /// Window along each spatial dimension.
    pub window: Vec<WindowDim<D>>,
    /// Batch axis of the operand.
    pub input_batch: usize,
    /// Feature axis of the operand.
    pub input_feature: usize,
    /// Spatial axes of the operand.
    pub input_spatial: Vec<usize>,
    /// Contracted axis of the kernel.
    pub kernel_input_feature: usize,
    /// Axis of the kernel that becomes the result's features.
    pub kernel_output_feature: usize,
    /// Spatial axes of the kernel.
    pub kernel_spatial: Vec<usize>,
    /// Batch axis of the result.
    pub output_batch: usize,
    /// Feature axis of the result.
    pub output_feature: usize,
    /// Spatial axes of the result.
    pub output_spatial: Vec<usize>,
    /// Number of feature groups.
    pub feature_group_count: u64,
    /// Number of batch groups.
    pub batch_group_count: u64,
}

/// Batch, feature and spatial axes of a convolution's operand or result; for the kernel, the input feature and output feature
/// axes come first.
pub type ConvAxes = (usize, usize, Vec<usize>);

impl ConvDims {
    /// Whether groups of one channel with `made` outputs each stay adjacent in vectors: elements of the operand are loaded once
    /// and repeated along the lanes.
    pub fn repeats_inputs_across_lanes(made: u64) -> bool {
        matches!(made, 1 | 2 | 4)
    }
}

impl<D: SizeRepr> ConvDims<D> {
    /// Dimension numbers of TensorFlow's NHWC layout, for a window along any number of spatial axes: operand and result are
    /// (batch, spatial, feature), the kernel is (spatial, input feature, output feature), in one group.
    pub fn channels_last(window: Vec<WindowDim<D>>) -> Self {
        let n = window.len();
        let image = || (0, n + 1, (1..=n).collect());
        Self { window, ..Self::from_axes(image(), (n, n + 1, (0..n).collect()), image()) }
    }

    /// Dimension numbers without a window, in one group, from the axes of operand, kernel and result.
    pub fn from_axes(input: ConvAxes, kernel: ConvAxes, output: ConvAxes) -> Self {
        let (input_batch, input_feature, input_spatial) = input;
        let (kernel_input_feature, kernel_output_feature, kernel_spatial) = kernel;
        let (output_batch, output_feature, output_spatial) = output;
        Self {
            window: Vec::new(),
            input_batch,
            input_feature,
            input_spatial,
            kernel_input_feature,
            kernel_output_feature,
            kernel_spatial,
            output_batch,
            output_feature,
            output_spatial,
            feature_group_count: 1,
            batch_group_count: 1,
        }
    }
}

/// Dimension numbers of a `gather`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GatherDims<D: SizeRepr = u64> {
    /// Axes of the result that enumerate slice elements.
    pub offset_dims: Vec<usize>,
    /// Axes of the operand whose slice size is 1 and that the result lacks.
    pub collapsed_slice_dims: Vec<usize>,
    /// Operand axis to which each index component applies.
    pub start_index_map: Vec<usize>,
    /// Axis of the indices that holds the components; the rank of the indices if these are scalars.
    pub index_vector_dim: usize,
    /// Batch axes of the operand.
    pub operand_batching_dims: Vec<usize>,
    /// Batch axes of the indices.
    pub start_indices_batching_dims: Vec<usize>,
    /// Size of the slice along each operand axis.
    pub slice_sizes: Vec<D>,
    /// Whether the indices are known to be sorted.
    pub indices_are_sorted: bool,
}

impl<D: SizeRepr> Default for GatherDims<D> {
    fn default() -> Self {
        GatherDims {
            offset_dims: Vec::new(),
            collapsed_slice_dims: Vec::new(),
            start_index_map: Vec::new(),
            index_vector_dim: 0,
            operand_batching_dims: Vec::new(),
            start_indices_batching_dims: Vec::new(),
            slice_sizes: Vec::new(),
            indices_are_sorted: false,
        }
    }
}

/// Dimension numbers of a `scatter`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ScatterDims {
    /// Axes of the updates that enumerate window elements.
    pub update_window_dims: Vec<usize>,
    /// Axes of the operand that the window lacks.
    pub inserted_window_dims: Vec<usize>,
    /// Operand axis to which each index component applies.
    pub scatter_dims_to_operand_dims: Vec<usize>,
    /// Axis of the indices that holds the components; the rank of the indices if these are scalars.
    pub index_vector_dim: usize,
    /// Batch axes of the operand.
    pub input_batching_dims: Vec<usize>,
    /// Batch axes of the indices.
    pub scatter_indices_batching_dims: Vec<usize>,
    /// Whether the indices are known to be sorted.
    pub indices_are_sorted: bool,
    /// Whether the indices are known to be unique.
    pub unique_indices: bool,
}

/// Slice parameters along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SliceDim<D: SizeRepr = u64> {
    /// Index of the first element.
    pub start: D,
    /// Index one past the last element.
    pub limit: D,
    /// Step between two elements, at least 1.
    pub stride: D,
}

impl<D: SizeRepr> SliceDim<D> {
    /// Slice of every element in `start..limit`.
    pub fn new(start: impl Into<D>, limit: impl Into<D>) -> Self {
        SliceDim { start: start.into(), limit: limit.into(), stride: D::from(1) }
    }
}

/// Padding parameters along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PadDim<D: SizeRepr = u64> {
    /// Padding before the first element; negative padding crops.
    pub low: D::SignedSize,
    /// Padding behind the last element; negative padding crops.
    pub high: D::SignedSize,
    /// Padding between two neighboring elements.
    pub interior: D,
}

impl<D: SizeRepr> Default for PadDim<D> {
    fn default() -> Self {
        PadDim { low: D::SignedSize::from(0), high: D::SignedSize::from(0), interior: D::from(0) }
    }
}

/// Direction and element types of an `fft`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FftKind {
    /// Complex to complex, forward.
    Fft,
    /// Complex to complex, inverse.
    Ifft,
    /// Real to the nonredundant half of the complex spectrum.
    Rfft,
    /// Nonredundant half of the complex spectrum to real.
    Irfft,
}

/// Form in which `triangular-solve` takes its matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transpose {
    /// Unchanged matrix.
    No,
    /// Transposed matrix.
    Yes,
    /// Conjugate transpose of the matrix.
    Adjoint,
}

/// Kind of kernel that a fusion becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FusionKind {
    /// Single loop over the root.
    Loop,
    /// Reduction with its producers.
    Input,
    /// Contraction with its consumers.
    Output,
    /// Any other kernel.
    Custom,
}

/// Opcode whose attributes are kept as text and only partly verified: collectives, asynchronous operations, custom calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ForeignOp {
    /// Opcode name in XLA.
    pub opcode: String,
    /// Attributes as written, `(name, text)`, in order.
    pub attrs: Vec<(String, String)>,
    /// Called computations, with the names of the attributes that name them.
    pub calls: Vec<(String, CompId)>,
}

impl ForeignOp {
    /// An attribute's text, without its quotes.
    pub fn attr(&self, name: &str) -> Option<&str> {
        self.attrs.iter().find(|a| a.0 == name).map(|a| a.1.trim_matches('"'))
    }
    /// The integer value of an attribute, plain or in braces.
    pub fn number(&self, name: &str) -> Option<usize> {
        let (_, text) = self.attrs.iter().find(|a| a.0 == name)?;
        text.trim_matches(['{', '}', ' ']).parse().ok()
    }
    /// Whether a boolean attribute is `true`.
    pub fn is_attr_true(&self, name: &str) -> bool {
        matches!(self.attr(name), Some("true" | "1"))
    }
    /// Whether the opcode is a custom call that states the placement of an array, which is meaningless on a single device.
    pub fn is_placement_hint(&self) -> bool {
        const HINTS: &[&str] = &[
            "Sharding",
            "SPMDFullToShardShape",
            "SPMDShardToFullShape",
            "MoveToHost",
            "MoveToDevice",
            "annotate_device_placement",
            "LayoutConstraint",
        ];
        self.opcode == "custom-call" && self.attr("custom_call_target").is_some_and(|target| HINTS.contains(&target))
    }
    /// The shapes of the operands with the layouts in `operand_layout_constraints`, if the attribute is present.
    ///
    /// # Errors
    /// `Code::HloSyntax` if it lists no shapes.
    pub fn operand_layouts(&self) -> Option<Result<Vec<Shape>>> {
        let text = self.attr("operand_layout_constraints")?.trim();
        let inside = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text);
        Some(parse_shapes(inside))
    }
    /// XLA's version number of a custom call's interface; 1 if the module names none.
    pub fn call_api_version(&self) -> u32 {
        match self.attr("api_version") {
            Some("API_VERSION_STATUS_RETURNING") => 2,
            Some("API_VERSION_STATUS_RETURNING_UNIFIED") => 3,
            Some("API_VERSION_TYPED_FFI") => 4,
            _ => 1,
        }
    }
    /// The bytes of a custom call's `backend_config`, here or among the opaque attributes of the instruction: the contents of a string, or a
    /// dictionary as text.
    pub fn call_config(&self, extra: &[(String, String)]) -> Vec<u8> {
        let all = self.attrs.iter().chain(extra);
        let Some((_, text)) = all.into_iter().find(|a| a.0 == "backend_config") else { return Vec::new() };
        match text.strip_prefix('"').and_then(|t| t.strip_suffix('"')) {
            Some(inside) => unescape(inside),
            None => text.clone().into_bytes(),
        }
    }
    /// The call with `operand_layout_constraints` adapted to the sizes of these operands; `None` if nothing changes.
    pub fn with_operand_sizes(&self, operands: &[&Shape]) -> Option<ForeignOp> {
        let mut layouts = self.operand_layouts()?.ok()?;
        let mut is_other = false;
        for (layout, operand) in layouts.iter_mut().zip(operands) {
            if let (Shape::Array(layout), Shape::Array(operand)) = (layout, operand)
                && layout.rank() == operand.rank()
                && layout.dims != operand.dims
            {
                layout.dims.clone_from(&operand.dims);
                is_other = true;
            }
        }
        let text: Vec<String> = layouts.iter().map(Shape::to_string).collect();
        let mut call = self.clone();
        let attr = call.attrs.iter_mut().find(|a| a.0 == "operand_layout_constraints")?;
        attr.1 = format!("{{{}}}", text.join(", "));
        is_other.then_some(call)
    }
}
