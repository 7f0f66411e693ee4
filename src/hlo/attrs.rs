//! The payloads of instructions. Axes are `usize` and already valid in a verified module.
use super::text::parse_shapes;
use super::{CompId, Shape};
use crate::diag::Result;

/// One dimension of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WindowDim {
    /// Window size.
    pub size: u64,
    /// Step between windows.
    pub stride: u64,
    /// Elements added before; negative crops.
    pub pad_low: i64,
    /// Elements added behind; negative crops.
    pub pad_high: i64,
    /// Base dilation: 1 + holes between elements of the operand.
    pub lhs_dilate: u64,
    /// Window dilation: 1 + holes between elements of the window.
    pub rhs_dilate: u64,
    /// The window is applied backwards.
    pub reversal: bool,
}

impl Default for WindowDim {
    fn default() -> Self {
        WindowDim { size: 1, stride: 1, pad_low: 0, pad_high: 0, lhs_dilate: 1, rhs_dilate: 1, reversal: false }
    }
}

/// How many elements `n` are with holes between them.
fn dilated(n: u64, by: u64) -> Option<u64> {
    if n == 0 { Some(0) } else { (n - 1).checked_mul(by)?.checked_add(1) }
}

impl WindowDim {
    /// Whether each window is the element of its number.
    pub fn is_element(&self) -> bool {
        self.size == 1 && self.stride == 1 && self.pad_low == 0 && self.pad_high == 0 && self.lhs_dilate == 1
    }
    /// The number of windows over `n` elements, or `None` where a size overflows.
    pub fn output_size(&self, n: u64) -> Option<u64> {
        let base = i64::try_from(dilated(n, self.lhs_dilate)?).ok()?;
        let base = base.checked_add(self.pad_low)?.checked_add(self.pad_high)?;
        let window = i64::try_from(self.reach()?).ok()?;
        if base < window || self.stride == 0 { Some(0) } else { Some((base - window) as u64 / self.stride + 1) }
    }
    /// How many neighbouring elements a window lies over, or `None` where that overflows.
    pub fn reach(&self) -> Option<u64> {
        dilated(self.size, self.rhs_dilate)
    }
}

/// The axes of a `dot`.
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

/// The axes and window of a `convolution`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConvDims {
    /// One entry a spatial dimension.
    pub window: Vec<WindowDim>,
    /// Axis of the operand that is the batch.
    pub input_batch: usize,
    /// Axis of the operand that is the features.
    pub input_feature: usize,
    /// Spatial axes of the operand.
    pub input_spatial: Vec<usize>,
    /// Axis of the kernel that is contracted.
    pub kernel_input_feature: usize,
    /// Axis of the kernel that becomes the output's features.
    pub kernel_output_feature: usize,
    /// Spatial axes of the kernel.
    pub kernel_spatial: Vec<usize>,
    /// Axis of the result that is the batch.
    pub output_batch: usize,
    /// Axis of the result that is the features.
    pub output_feature: usize,
    /// Spatial axes of the result.
    pub output_spatial: Vec<usize>,
    /// Groups of features.
    pub feature_group_count: u64,
    /// Groups of the batch.
    pub batch_group_count: u64,
}

/// The two named axes of a convolution's operand, kernel or result, and its spatial ones.
pub type ConvAxes = (usize, usize, Vec<usize>);

impl ConvDims {
    /// Whether groups of one channel that make so many each lie in vectors as they are: elements of the operand are loaded once
    /// and repeated along the lanes.
    pub fn repeats(made: u64) -> bool {
        matches!(made, 1 | 2 | 4)
    }

    /// The axes that TensorFlow's NHWC has, for a window along any number of spatial axes: operand and result as (batch, spatial,
    /// feature), the kernel as (spatial, input feature, output feature). Groups of one.
    pub fn channels_last(window: Vec<WindowDim>) -> Self {
        let n = window.len();
        let image = || (0, n + 1, (1..=n).collect());
        Self { window, ..Self::of_axes(image(), (n, n + 1, (0..n).collect()), image()) }
    }

    /// The axes alone: operand and result as (batch, feature, spatial), the kernel as (input feature, output feature,
    /// spatial). No window, groups of one.
    pub fn of_axes(input: ConvAxes, kernel: ConvAxes, output: ConvAxes) -> Self {
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

/// The axes of a `gather`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct GatherDims {
    /// Axes of the result that come from the slice.
    pub offset_dims: Vec<usize>,
    /// Axes of the operand whose slice size is 1 and which are dropped.
    pub collapsed_slice_dims: Vec<usize>,
    /// Operand axis of each index component.
    pub start_index_map: Vec<usize>,
    /// Axis of the indices that holds the components; the rank where each index is a scalar.
    pub index_vector_dim: usize,
    /// Batch axes of the operand.
    pub operand_batching_dims: Vec<usize>,
    /// Batch axes of the indices.
    pub start_indices_batching_dims: Vec<usize>,
    /// Size of the slice along each operand axis.
    pub slice_sizes: Vec<u64>,
    /// Whether the indices are known to be sorted.
    pub indices_are_sorted: bool,
}

/// The axes of a `scatter`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ScatterDims {
    /// Axes of the updates that are the window.
    pub update_window_dims: Vec<usize>,
    /// Axes of the operand that the window lacks.
    pub inserted_window_dims: Vec<usize>,
    /// Operand axis of each index component.
    pub scatter_dims_to_operand_dims: Vec<usize>,
    /// Axis of the indices that holds the components.
    pub index_vector_dim: usize,
    /// Batch axes of the operand.
    pub input_batching_dims: Vec<usize>,
    /// Batch axes of the indices.
    pub scatter_indices_batching_dims: Vec<usize>,
    /// Whether the indices are known to be sorted.
    pub indices_are_sorted: bool,
    /// Whether the indices are known to differ.
    pub unique_indices: bool,
}

/// One dimension of a `slice`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SliceDim {
    /// First element.
    pub start: u64,
    /// One past the last.
    pub limit: u64,
    /// Step, at least 1.
    pub stride: u64,
}

/// One dimension of a `pad`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PadDim {
    /// Elements added before; negative crops.
    pub low: i64,
    /// Elements added behind; negative crops.
    pub high: i64,
    /// Elements added between neighbours.
    pub interior: u64,
}

/// The kind of an `fft`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FftKind {
    /// Complex to complex.
    Fft,
    /// Complex to complex, inverse.
    Ifft,
    /// Real to half complex.
    Rfft,
    /// Half complex to real.
    Irfft,
}

/// How `triangular-solve` reads its matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transpose {
    /// As it is.
    No,
    /// Transposed.
    Yes,
    /// Transposed and conjugated.
    Adjoint,
}

/// What becomes of fused instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FusionKind {
    /// One loop over the root.
    Loop,
    /// A reduction with its producers.
    Input,
    /// A contraction with its consumers.
    Output,
    /// Anything else.
    Custom,
}

/// An opcode that this compiler only reads, verifies the frame of, and prints: collectives, async, custom calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Foreign {
    /// XLA's opcode.
    pub opcode: String,
    /// Attributes as written, `(name, text)`, in order.
    pub attrs: Vec<(String, String)>,
    /// Computations it calls, with the attribute's name.
    pub calls: Vec<(String, CompId)>,
}

impl Foreign {
    /// An attribute's text, without its quotes.
    pub fn attr(&self, name: &str) -> Option<&str> {
        self.attrs.iter().find(|a| a.0 == name).map(|a| a.1.trim_matches('"'))
    }
    /// The whole number that an attribute is, which stands alone or in braces.
    pub fn number(&self, name: &str) -> Option<usize> {
        let (_, text) = self.attrs.iter().find(|a| a.0 == name)?;
        text.trim_matches(['{', '}', ' ']).parse().ok()
    }
    /// Whether an attribute says so.
    pub fn is_set(&self, name: &str) -> bool {
        matches!(self.attr(name), Some("true" | "1"))
    }
    /// Whether it is a custom call that says where an array should be, which is nothing to one device.
    pub fn is_hint(&self) -> bool {
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
    /// The shapes of the operands with the layouts that `operand_layout_constraints` asks for, where it is there.
    ///
    /// # Errors
    /// `Code::HloSyntax` where it lists no shapes.
    pub fn operand_layouts(&self) -> Option<Result<Vec<Shape>>> {
        let text = self.attr("operand_layout_constraints")?.trim();
        let inside = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text);
        Some(parse_shapes(inside))
    }
}
