//! Buffers: dense, row-major arrays in memory of this process.
use crate::boundary::{give, object, slice, take};
use crate::c_api::buffer::*;
use crate::client::Client;
use crate::device::Device;
use crate::element;
use crate::event::Event;
use crate::failure::{Code, Failure};
use crate::layouts::MinorToMajor;
use crate::memory::Memory;
use crate::storage::{Block, Storage};
use std::ffi::c_int;
use std::sync::{Arc, Mutex, PoisonError};
use tfaot::DType;

/// `PJRT_Buffer`.
pub struct Buffer {
    /// None once the buffer is deleted or donated.
    storage: Mutex<Option<Arc<Storage>>>,
    /// Storage that other libraries use, once for each that said so.
    external: Mutex<Vec<Arc<Storage>>>,
    /// The element type.
    pub dtype: DType,
    number: c_int,
    /// The size of each axis.
    pub dims: Vec<i64>,
    layout: MinorToMajor,
    memory: *mut Memory,
}

// SAFETY: the memory lives as long as the client, which outlives its buffers.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// An array in a storage.
    ///
    /// # Errors
    /// `Code::Unimplemented` for types that callers can't have.
    pub fn new(storage: Storage, dtype: DType, dims: Vec<i64>, memory: *mut Memory) -> Result<Buffer, Failure> {
        let (number, layout) = (element::number(dtype)?, MinorToMajor::row_major(dims.len()));
        let (storage, external) = (Mutex::new(Some(Arc::new(storage))), Mutex::default());
        Ok(Buffer { storage, external, dtype, number, dims, layout, memory })
    }

    /// The storage, which lives as long as somebody has it.
    ///
    /// # Errors
    /// `Code::InvalidArgument` for a deleted buffer.
    pub fn storage(&self) -> Result<Arc<Storage>, Failure> {
        let storage = self.storage.lock().unwrap_or_else(PoisonError::into_inner);
        storage.clone().ok_or_else(|| Failure::new(Code::InvalidArgument, "the buffer has been deleted or donated"))
    }

    /// Lets go of the storage.
    pub fn release(&self) {
        let old = self.storage.lock().unwrap_or_else(PoisonError::into_inner).take();
        // functions of others run without the lock
        drop(old);
    }

    /// Bytes of the array.
    ///
    /// # Errors
    /// None, as the array exists.
    pub fn bytes(&self) -> Result<usize, Failure> {
        element::bytes(self.dtype, &self.dims)
    }

    fn copy_to(&self, memory: *mut Memory) -> Result<*mut Buffer, Failure> {
        let (from, bytes) = (self.storage()?, self.bytes()?);
        let to = Block::new(bytes)?;
        // SAFETY: both have as many bytes, and the new block is nobody else's.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_ptr(), bytes) };
        Ok(give(Buffer::new(Storage::Own(to), self.dtype, self.dims.clone(), memory)?))
    }
}

/// The memory that a caller names, or the default one of the device that it names, or of the first device.
///
/// # Errors
/// Errors of an incomplete client.
pub fn memory_of(client: *mut Client, device: *mut Device, memory: *mut Memory) -> Result<*mut Memory, Failure> {
    if !memory.is_null() {
        return Ok(memory);
    }
    let device = if device.is_null() { object(client)?.device(0)? } else { device };
    object(device)?.default_memory()
}

/// `PJRT_Client_CreateUninitializedBuffer`.
pub fn create_uninitialized(args: &mut ClientCreateUninitializedBufferArgs) -> Result<(), Failure> {
    let dtype = element::of_number(args.shape_element_type)?;
    let dims = slice(args.shape_dims, args.shape_num_dims).to_vec();
    let storage = Storage::Own(Block::new(element::bytes(dtype, &dims)?)?);
    let memory = memory_of(args.client, args.device, args.memory)?;
    args.buffer = give(Buffer::new(storage, dtype, dims, memory)?);
    Ok(())
}

/// `PJRT_Client_CreateViewOfDeviceBuffer`.
pub fn create_view(args: &mut ClientCreateViewOfDeviceBufferArgs) -> Result<(), Failure> {
    let dtype = element::of_number(args.element_type)?;
    let dims = slice(args.dims, args.num_dims).to_vec();
    element::bytes(dtype, &dims)?;
    MinorToMajor::of_caller(args.layout, dims.len(), dtype)?.require_row_major(&dims)?;
    let at: *const u8 = args.device_buffer_ptr.cast_const().cast();
    if at.align_offset(dtype.bytes()) != 0 {
        let told = format!("memory for {dtype} is not aligned to {} bytes", dtype.bytes());
        return Err(Failure::new(Code::InvalidArgument, told));
    }
    let memory = memory_of(args.client, args.device, args.memory)?;
    let storage = Storage::View { at, on_drop: args.on_delete_callback, argument: args.on_delete_callback_arg };
    args.buffer = give(Buffer::new(storage, dtype, dims, memory)?);
    Ok(())
}

/// `PJRT_Buffer_Destroy`.
pub fn destroy(args: &mut BufferDestroyArgs) -> Result<(), Failure> {
    take(args.buffer);
    Ok(())
}

/// `PJRT_Buffer_ElementType`.
pub fn element_type(args: &mut BufferElementTypeArgs) -> Result<(), Failure> {
    args.kind = object(args.buffer)?.number;
    Ok(())
}

/// `PJRT_Buffer_Dimensions`.
pub fn dimensions(args: &mut BufferDimensionsArgs) -> Result<(), Failure> {
    let dims = &object(args.buffer)?.dims;
    (args.dims, args.num_dims) = (dims.as_ptr(), dims.len());
    Ok(())
}

/// `PJRT_Buffer_UnpaddedDimensions`.
pub fn unpadded_dimensions(args: &mut BufferUnpaddedDimensionsArgs) -> Result<(), Failure> {
    let dims = &object(args.buffer)?.dims;
    (args.unpadded_dims, args.num_dims) = (dims.as_ptr(), dims.len());
    Ok(())
}

/// `PJRT_Buffer_DynamicDimensionIndices`: none.
pub fn dynamic_dimensions(args: &mut BufferDynamicDimensionIndicesArgs) -> Result<(), Failure> {
    (args.dynamic_dim_indices, args.num_dynamic_dims) = (std::ptr::null(), 0);
    Ok(())
}

/// `PJRT_Buffer_GetMemoryLayout`.
pub fn memory_layout(args: &mut BufferGetMemoryLayoutArgs) -> Result<(), Failure> {
    args.layout = object(args.buffer)?.layout.lend();
    Ok(())
}

/// `PJRT_Buffer_OnDeviceSizeInBytes`.
pub fn bytes(args: &mut BufferOnDeviceSizeInBytesArgs) -> Result<(), Failure> {
    args.on_device_size_in_bytes = object(args.buffer)?.bytes()?;
    Ok(())
}

/// `PJRT_Buffer_Delete`.
pub fn delete(args: &mut BufferDeleteArgs) -> Result<(), Failure> {
    object(args.buffer)?.release();
    Ok(())
}

/// `PJRT_Buffer_IsDeleted`.
pub fn is_deleted(args: &mut BufferIsDeletedArgs) -> Result<(), Failure> {
    args.is_deleted = object(args.buffer)?.storage().is_err();
    Ok(())
}

/// `PJRT_Buffer_CopyToDevice`.
pub fn copy_to_device(args: &mut BufferCopyToDeviceArgs) -> Result<(), Failure> {
    args.dst_buffer = object(args.buffer)?.copy_to(object(args.dst_device)?.default_memory()?)?;
    Ok(())
}

/// `PJRT_Buffer_CopyToMemory`.
pub fn copy_to_memory(args: &mut BufferCopyToMemoryArgs) -> Result<(), Failure> {
    object(args.dst_memory)?;
    args.dst_buffer = object(args.buffer)?.copy_to(args.dst_memory)?;
    Ok(())
}

/// `PJRT_Buffer_IsOnCpu`.
pub fn is_on_cpu(args: &mut BufferIsOnCpuArgs) -> Result<(), Failure> {
    args.is_on_cpu = true;
    Ok(())
}

/// `PJRT_Buffer_Device`.
pub fn device(args: &mut BufferDeviceArgs) -> Result<(), Failure> {
    args.device = object(object(args.buffer)?.memory)?.device;
    Ok(())
}

/// `PJRT_Buffer_Memory`.
pub fn memory(args: &mut BufferMemoryArgs) -> Result<(), Failure> {
    args.memory = object(args.buffer)?.memory;
    Ok(())
}

/// `PJRT_Buffer_ReadyEvent`.
pub fn ready_event(args: &mut BufferReadyEventArgs) -> Result<(), Failure> {
    object(args.buffer)?;
    args.event = give(Event::ready());
    Ok(())
}

/// `PJRT_Buffer_UnsafePointer`.
pub fn unsafe_pointer(args: &mut BufferUnsafePointerArgs) -> Result<(), Failure> {
    args.buffer_pointer = object(args.buffer)?.storage()?.as_ptr() as usize;
    Ok(())
}

/// `PJRT_Buffer_OpaqueDeviceMemoryDataPointer`.
pub fn data_pointer(args: &mut BufferOpaqueDeviceMemoryDataPointerArgs) -> Result<(), Failure> {
    args.device_memory_ptr = object(args.buffer)?.storage()?.as_ptr().cast_mut().cast();
    Ok(())
}

/// `PJRT_Buffer_IncreaseExternalReferenceCount`: the memory stays until the count is as low again.
pub fn add_reference(args: &mut BufferIncreaseExternalReferenceCountArgs) -> Result<(), Failure> {
    let buffer = object(args.buffer)?;
    let storage = buffer.storage()?;
    buffer.external.lock().unwrap_or_else(PoisonError::into_inner).push(storage);
    Ok(())
}

/// `PJRT_Buffer_DecreaseExternalReferenceCount`.
pub fn drop_reference(args: &mut BufferDecreaseExternalReferenceCountArgs) -> Result<(), Failure> {
    let last = object(args.buffer)?.external.lock().unwrap_or_else(PoisonError::into_inner).pop();
    last.map(drop).ok_or_else(|| Failure::new(Code::FailedPrecondition, "nobody else uses the buffer"))
}
