//! Layouts: the order of axes in memory. All buffers are row-major; the extension tells callers so.
use crate::boundary::{give, lend, object, slice, take};
use crate::c_api::buffer::{BufferMemoryLayout, BufferMemoryLayoutContent, BufferMemoryLayoutTiled};
use crate::c_api::extensions::*;
use crate::failure::{Code, Failure};
use tfaot::DType;

/// The axes of an array, the one whose elements lie beside one another first: `PJRT_Layouts_MemoryLayout`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinorToMajor {
    axes: Vec<i64>,
    text: String,
}

impl MinorToMajor {
    /// The last axis first.
    pub fn row_major(rank: usize) -> MinorToMajor {
        MinorToMajor::new((0..rank as i64).rev().collect())
    }

    fn new(axes: Vec<i64>) -> MinorToMajor {
        let text = axes.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
        MinorToMajor { axes, text: format!("{{{text}}}") }
    }

    /// The layout that a caller names for an array of a rank; row-major where it names none.
    ///
    /// # Errors
    /// `Code::InvalidArgument` for what is no order of the axes, `Code::Unimplemented` for tiles and strides.
    pub fn of_caller(layout: *const BufferMemoryLayout, rank: usize, _: DType) -> Result<MinorToMajor, Failure> {
        if layout.is_null() {
            return Ok(MinorToMajor::row_major(rank));
        }
        let layout = object(layout)?;
        if layout.kind != 0 {
            return Err(Failure::new(Code::Unimplemented, "layouts of strides are not known here"));
        }
        // SAFETY: the layout is one of tiles, as was just seen.
        let tiled = unsafe { layout.content.tiled };
        if tiled.num_tiles != 0 {
            return Err(Failure::new(Code::Unimplemented, "arrays in tiles are not known"));
        }
        let axes = slice(tiled.minor_to_major, tiled.minor_to_major_size).to_vec();
        let mut sorted = axes.clone();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..rank as i64) {
            return Err(Failure::new(Code::InvalidArgument, format!("{axes:?} is no order of {rank} axes")));
        }
        Ok(MinorToMajor::new(axes))
    }

    /// Bytes from an element to the next along each axis of a dense array.
    pub fn strides(&self, dims: &[i64], element: usize) -> Vec<i64> {
        let mut strides = vec![0; dims.len()];
        let mut step = element as i64;
        for &axis in &self.axes {
            strides[axis as usize] = step;
            step = step.saturating_mul(dims[axis as usize].max(1));
        }
        strides
    }

    /// Refuses layouts in which elements lie in another order than row-major.
    ///
    /// # Errors
    /// `Code::Unimplemented`.
    pub fn require_row_major(&self, dims: &[i64]) -> Result<(), Failure> {
        let moved = |order: &MinorToMajor| -> Vec<i64> {
            order.axes.iter().copied().filter(|&axis| dims[axis as usize] != 1).collect()
        };
        if moved(self) == moved(&MinorToMajor::row_major(dims.len())) {
            return Ok(());
        }
        Err(Failure::new(Code::Unimplemented, format!("arrays are row-major, and layout {} was asked for", self.text)))
    }

    /// The layout as a struct of the interface, which points at this one.
    pub fn lend(&self) -> BufferMemoryLayout {
        BufferMemoryLayout {
            struct_size: size_of::<BufferMemoryLayout>(),
            extension_start: std::ptr::null_mut(),
            content: BufferMemoryLayoutContent {
                tiled: BufferMemoryLayoutTiled {
                    struct_size: size_of::<BufferMemoryLayoutTiled>(),
                    extension_start: std::ptr::null_mut(),
                    minor_to_major: self.axes.as_ptr(),
                    minor_to_major_size: self.axes.len(),
                    tile_dims: std::ptr::null(),
                    tile_dim_sizes: std::ptr::null(),
                    num_tiles: 0,
                },
            },
            kind: 0,
        }
    }
}

/// `PJRT_Layouts_MemoryLayout_Destroy`.
pub fn destroy(args: &mut LayoutsMemoryLayoutDestroyArgs) -> Result<(), Failure> {
    take(args.layout);
    Ok(())
}

/// `PJRT_Layouts_MemoryLayout_Serialize`: XLA's text, `{1,0}`.
pub fn serialize(args: &mut LayoutsMemoryLayoutSerializeArgs) -> Result<(), Failure> {
    unsafe extern "C" fn nothing(_: *mut std::ffi::c_void) {}
    lend(&object(args.layout)?.text, &mut args.serialized_bytes, &mut args.serialized_bytes_size);
    // the layout has the text
    args.serialized_layout = args.layout.cast();
    args.serialized_layout_deleter = Some(nothing);
    Ok(())
}

/// `PJRT_Layouts_PJRT_Buffer_MemoryLayout`.
pub fn of_buffer(args: &mut LayoutsPjrtBufferMemoryLayoutArgs) -> Result<(), Failure> {
    args.layout = give(MinorToMajor::row_major(object(args.buffer)?.dims.len()));
    Ok(())
}

/// `PJRT_Layouts_PJRT_Client_GetDefaultLayout`.
pub fn of_client(args: &mut LayoutsPjrtClientGetDefaultLayoutArgs) -> Result<(), Failure> {
    args.layout = give(MinorToMajor::row_major(args.num_dims));
    Ok(())
}

/// `PJRT_Layouts_PJRT_Topology_GetDefaultLayout`.
pub fn of_topology(args: &mut LayoutsPjrtTopologyGetDefaultLayoutArgs) -> Result<(), Failure> {
    args.layout = give(MinorToMajor::row_major(args.num_dims));
    Ok(())
}

/// `PJRT_Layouts_PJRT_Executable_GetOutputLayouts`.
pub fn of_outputs(args: &mut LayoutsPjrtExecutableGetOutputLayoutsArgs) -> Result<(), Failure> {
    let all = object(args.executable)?.output_layouts();
    (args.layouts, args.num_outputs) = (all.as_ptr().cast_mut(), all.len());
    Ok(())
}
