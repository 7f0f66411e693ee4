//! A program cut to what its fetches need.
