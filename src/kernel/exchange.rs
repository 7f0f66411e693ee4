//! Exchanges with other ranks: what stands between kernels where a module has a collective.
//!
//! All ranks run the same code. The caller hands over a `tfaot_communicator`, which moves bytes; what is computed of them is computed by
//! kernels, in the order of the group, so that results do not depend on who came first.
use super::Program;
use super::call::{CallTarget, find_call};

/// A collective operation among ranks, with the groups that take part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Collective {
    /// Each rank of a group gives a block to all, and gets those of all in the order of the group.
    AllGather(Vec<Vec<u32>>),
    /// Each rank of a group gives a block to each, and gets one of each in the order of the group.
    AllToAll(Vec<Vec<u32>>),
    /// The first rank of a group gives a block to all of it; ranks in no group get zeros.
    Broadcast(Vec<Vec<u32>>),
    /// The first of a pair gives a block to the second; ranks to which nobody gives get zeros.
    Permute(Vec<[u32; 2]>),
    /// The rank's number, without an exchange: the result is `rank / divisor % modulus`, a u32.
    Rank {
        /// Partitions per replica for a replica's number; 1 for a partition's number.
        divisor: u32,
        /// Number of distinct values.
        modulus: u32,
    },
}

/// An exchange among the ranks that run a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The kind of the collective, with its groups.
    pub movement: Collective,
    /// The sequence number of the exchange in the model, by which ranks check that they are at the same one.
    pub number: u32,
    /// Number of ranks that run the model.
    pub ranks: u32,
    /// Size of one block in bytes.
    pub bytes: u64,
}

impl Collective {
    /// The name of the collective in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Collective::AllGather(_) => "all-gather",
            Collective::AllToAll(_) => "all-to-all",
            Collective::Broadcast(_) => "broadcast",
            Collective::Permute(_) => "permute",
            Collective::Rank { .. } => "rank",
        }
    }
    /// For each rank, the index of the list that its communicator is given, and the lists: the ranks of its group, or the receiver and
    /// the sender of its block, -1 for nobody. A rank without a list takes no part.
    pub fn communicator_lists(&self, ranks: u32) -> (Vec<Option<u32>>, Vec<Vec<i64>>) {
        let mut of = vec![None; ranks as usize];
        let mut all = Vec::new();
        match self {
            Collective::AllGather(groups) | Collective::AllToAll(groups) | Collective::Broadcast(groups) => {
                for (number, group) in (0..).zip(groups) {
                    group.iter().for_each(|&rank| of[rank as usize] = Some(number));
                    all.push(group.iter().map(|&rank| i64::from(rank)).collect());
                }
            }
            Collective::Permute(pairs) => {
                for rank in 0..ranks {
                    let other = |from: usize, to: usize| {
                        pairs.iter().find(|pair| pair[from] == rank).map_or(-1, |pair| i64::from(pair[to]))
                    };
                    let list = vec![other(0, 1), other(1, 0)];
                    if list != [-1, -1] {
                        of[rank as usize] = Some(all.len() as u32);
                        all.push(list);
                    }
                }
            }
            Collective::Rank { .. } => {}
        }
        (of, all)
    }
    /// Whether some rank receives nothing, so that its result is zeros.
    pub fn fills_ranks_with_zeros(&self, ranks: u32) -> bool {
        match self {
            Collective::Broadcast(groups) => groups.iter().map(Vec::len).sum::<usize>() < ranks as usize,
            Collective::Permute(pairs) => pairs.len() < ranks as usize,
            Collective::AllGather(_) | Collective::AllToAll(_) | Collective::Rank { .. } => false,
        }
    }
}

/// Number of ranks that run these programs; `None` if they exchange nothing.
pub fn rank_count<'p>(programs: impl IntoIterator<Item = &'p Program>) -> Option<u32> {
    let of = |called: &CallTarget| match called {
        CallTarget::Ranks(exchange) => Some(exchange.ranks),
        CallTarget::Function(_) | CallTarget::Host(_) => None,
    };
    programs.into_iter().find_map(|program| find_call(&program.steps, &mut |called| of(called)))
}
