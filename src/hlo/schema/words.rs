//! Enumerations in payloads, and XLA's names for their values.
use crate::hlo::attrs::{FftKind, FusionKind, Transpose};

/// Enumeration whose values have names in text and messages.
pub trait NamedValues: Copy + PartialEq + 'static {
    /// Values with XLA's names, in the order of XLA's enumeration; the first is the default.
    const WORDS: &'static [(&'static str, Self)];
    /// Name of the value in XLA.
    fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, value)| *value == self).map_or("", |(word, _)| word)
    }
    /// Value with this name; the default for an unknown name.
    fn of_word(word: &str) -> Self {
        Self::WORDS.iter().find(|(known, _)| *known == word).unwrap_or(&Self::WORDS[0]).1
    }
}

impl NamedValues for FftKind {
    const WORDS: &'static [(&'static str, Self)] =
        &[("FFT", FftKind::Fft), ("IFFT", FftKind::Ifft), ("RFFT", FftKind::Rfft), ("IRFFT", FftKind::Irfft)];
}

impl NamedValues for Transpose {
    const WORDS: &'static [(&'static str, Self)] =
        &[("NO_TRANSPOSE", Transpose::No), ("TRANSPOSE", Transpose::Yes), ("ADJOINT", Transpose::Adjoint)];
}

impl NamedValues for FusionKind {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("kLoop", FusionKind::Loop),
        ("kInput", FusionKind::Input),
        ("kOutput", FusionKind::Output),
        ("kCustom", FusionKind::Custom),
    ];
}
