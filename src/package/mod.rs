//! Objects, headers, archives, shared libraries.
