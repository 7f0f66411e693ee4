//! The straight line from a file to an object.
