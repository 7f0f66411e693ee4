//! Output files of a compilation: objects, headers for several languages, archives, shared libraries, metadata.
pub mod archive;
pub mod build_files;
mod calls;
pub mod clusters;
pub mod cpp;
pub mod depfile;
pub mod files;
pub mod fortran;
pub mod rust;
pub mod header;
pub mod loop_counts;
pub mod metadata;
pub mod names;
pub mod pool;
pub mod ranks;
pub mod shared_library;
pub mod temporary_files;
