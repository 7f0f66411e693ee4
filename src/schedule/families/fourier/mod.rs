//! Fourier transforms of lines of complex numbers in one kernel (Stockham's method: each pass writes its sums in order, so that no digits
//! are reversed). A pass transforms the numbers of a factor of the length, in registers; what is between passes is a line, on the stack.
mod butterfly;
mod loops;

pub use loops::FAMILY;
