//! Enumerations of payloads, and XLA's words for them.
use crate::hlo::attrs::{FftKind, FusionKind, Transpose};

/// A type whose values are words in text and messages.
pub trait Words: Copy + PartialEq + 'static {
    /// Each value with XLA's word, in the order of XLA's enumeration; the first is the default.
    const WORDS: &'static [(&'static str, Self)];
    /// XLA's word.
    fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, value)| *value == self).map_or("", |(word, _)| word)
    }
    /// The value of a word; the default for one that is unknown.
    fn of_word(word: &str) -> Self {
        Self::WORDS.iter().find(|(known, _)| *known == word).unwrap_or(&Self::WORDS[0]).1
    }
}

impl Words for FftKind {
    const WORDS: &'static [(&'static str, Self)] =
        &[("FFT", FftKind::Fft), ("IFFT", FftKind::Ifft), ("RFFT", FftKind::Rfft), ("IRFFT", FftKind::Irfft)];
}

impl Words for Transpose {
    const WORDS: &'static [(&'static str, Self)] =
        &[("NO_TRANSPOSE", Transpose::No), ("TRANSPOSE", Transpose::Yes), ("ADJOINT", Transpose::Adjoint)];
}

impl Words for FusionKind {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("kLoop", FusionKind::Loop),
        ("kInput", FusionKind::Input),
        ("kOutput", FusionKind::Output),
        ("kCustom", FusionKind::Custom),
    ];
}
