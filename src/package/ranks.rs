//! Declarations in headers of models that several ranks run together, and the two communicators that are shipped as C files.
use crate::diag::{Code, Error, Result};
use crate::kernel::ModelInterface;

/// The text of `tfaot_threads.h`, the same for all models.
pub const THREADS: &str = include_str!("ranks/tfaot_threads.h");
/// The text of `tfaot_mpi.h`, the same for all models.
pub const MPI: &str = include_str!("ranks/tfaot_mpi.h");

/// The declaration of `tfaot_communicator`, once per translation unit.
const COMMUNICATOR: &str = r#"#ifndef TFAOT_COMMUNICATOR
#define TFAOT_COMMUNICATOR

/* What is moved at one place of a model. */
typedef struct tfaot_exchange {
  uint32_t number; /* of the place: the same on all ranks that take part */
  uint32_t count;  /* of ranks */
  const int32_t *ranks;
  size_t bytes; /* of one block */
} tfaot_exchange;

/* How a rank reaches the others, which run the same model. A function returns 0 when `to` is filled and `from` may be changed, or
 * anything else where a rank failed, is elsewhere (another number or other bytes), or does not come in time: then so does every
 * later call. Blocks lie one behind the other. */
struct tfaot_communicator {
  void *self;
  int32_t rank, size; /* which of how many */
  /* from: a block. to: one of each of `ranks`, in that order, which all get the same. */
  int (*all_gather)(void *self, const tfaot_exchange *exchange, const void *from, void *to);
  /* from: a block for each of `ranks`, in that order. to: one of each. */
  int (*all_to_all)(void *self, const tfaot_exchange *exchange, const void *from, void *to);
  /* from: the block of ranks[0], which all of `ranks` get. */
  int (*broadcast)(void *self, const tfaot_exchange *exchange, const void *from, void *to);
  /* from: a block for ranks[0]. to: one of ranks[1]. Either may be this rank, or -1: nobody; then `to` is left as it is. */
  int (*permute)(void *self, const tfaot_exchange *exchange, const void *from, void *to);
  /* Tells the others that this rank failed, so that nobody waits for it; may be called more than once. */
  void (*fail)(void *self);
};

#endif /* TFAOT_COMMUNICATOR */

"#;

/// `tfaot_communicator` and the number of ranks; empty for a model of one rank.
pub(super) fn declarations(face: &ModelInterface) -> String {
    let Some(count) = face.ranks else { return String::new() };
    let upper = face.name.to_uppercase();
    format!(
        "{COMMUNICATOR}/* Ranks run the model together, each with its own arguments; all call the same functions in the same order. Where one fails all\n \
         * calls end, with TFAOT_E_RANKS on the others. Sums over ranks are made in the order of their numbers. */\n\
         #define {upper}_RANKS {count}\n\n"
    )
}

/// The parameter of a function for the communicator, preceded by a comma; empty for a model of one rank.
pub(super) fn communicator_parameter(face: &ModelInterface) -> &'static str {
    if face.ranks.is_some() { ", const tfaot_communicator *communicator" } else { "" }
}

/// Refuses to write a model for several ranks in the output format `form`, which has no communicator.
///
/// # Errors
/// `Code::BadOption` if the model is for several ranks.
pub fn require_single_rank(face: &ModelInterface, form: &str) -> Result<()> {
    if face.ranks.is_none() {
        return Ok(());
    }
    let told = format!("`--emit {form}` is for models that one rank runs; the C header has those of several");
    Err(Error::user(Code::BadOption, told))
}
