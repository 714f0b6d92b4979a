//! What mirrors gave in a run. A mirror is tried with a few resources first, because a whole wave of them may be planned
//! before its first answer. One that gave other bytes than the declared ones too often is left out.

use std::collections::HashMap;

use model::{Failure, Origin, ProblemReason};

/// Bytes of a mirror that are not the declared ones, after which it is left out for the rest of the run.
pub(crate) const MOST_MISFITS: u32 = 3;
/// Origins of mirrors that are counted. Further ones are neither tried first nor left out.
const MOST_COUNTED: usize = 1_024;

/// The mirrors of a run, by origin.
#[derive(Debug, Default)]
pub(crate) struct MirrorTrials(HashMap<Origin, Trial>);

#[derive(Debug, Default)]
struct Trial {
    misfits: u32,
    /// Whether it gave anything else than misfits.
    has_fit: bool,
}

impl MirrorTrials {
    /// Counts the result of a request to a mirror: its failure, or none.
    pub(crate) fn note(&mut self, origin: &Origin, failure: Option<&Failure>) {
        use ProblemReason::{DigestMismatch, LengthMismatch, UnexpectedHtml};
        if self.0.len() >= MOST_COUNTED && !self.0.contains_key(origin) {
            return;
        }
        let trial = self.0.entry(origin.clone()).or_default();
        match failure.map(|failure| failure.reason) {
            Some(DigestMismatch | LengthMismatch | UnexpectedHtml) => trial.misfits += 1,
            _ => trial.has_fit = true,
        }
    }

    /// Whether a mirror is left out.
    pub(crate) fn is_left_out(&self, origin: &Origin) -> bool {
        self.0.get(origin).is_some_and(Trial::is_left_out)
    }

    /// The mirrors that are left out.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = &Origin> {
        self.0.iter().filter(|(_, trial)| trial.is_left_out()).map(|(origin, _)| origin)
    }

    /// How many resources may be requested at a mirror before more is known of it; none: any number.
    pub(crate) fn most_at(&self, origin: &Origin) -> Option<u32> {
        match self.0.get(origin) {
            Some(trial) if trial.has_fit => None,
            Some(trial) => Some(MOST_MISFITS.saturating_sub(trial.misfits)),
            None => (self.0.len() < MOST_COUNTED).then_some(MOST_MISFITS),
        }
    }
}

impl Trial {
    fn is_left_out(&self) -> bool {
        self.misfits >= MOST_MISFITS
    }
}

#[cfg(test)]
mod tests {
    use model::Disposition;

    use super::*;

    fn failure(reason: ProblemReason) -> Failure {
        Failure {
            reason,
            message: String::new(),
            disposition: Disposition::Refuse,
            evidence: Default::default(),
        }
    }

    #[test]
    fn three_misfits_leave_a_mirror_out_and_one_fit_opens_it() {
        let [bad, good]: [Origin; 2] = ["http://bad", "http://good"].map(|text| text.parse().unwrap());
        let mut trials = MirrorTrials::default();
        assert_eq!(trials.most_at(&bad), Some(3));
        for left in [2, 1, 0] {
            assert!(!trials.is_left_out(&bad));
            trials.note(&bad, Some(&failure(ProblemReason::DigestMismatch)));
            assert_eq!(trials.most_at(&bad), Some(left));
        }
        assert_eq!((trials.is_left_out(&bad), trials.left_out().count()), (true, 1));

        trials.note(&good, Some(&failure(ProblemReason::LengthMismatch)));
        trials.note(&good, Some(&failure(ProblemReason::HttpClientError)));
        assert_eq!(trials.most_at(&good), None, "a missing file is no wrong one");
        for _ in 0..2 {
            trials.note(&good, None);
            trials.note(&good, Some(&failure(ProblemReason::UnexpectedHtml)));
        }
        assert!(trials.is_left_out(&good));
    }

    #[test]
    fn beyond_the_bound_mirrors_are_requested_without_a_trial() {
        let mut trials = MirrorTrials::default();
        for n in 0..MOST_COUNTED {
            trials.note(&format!("http://m{n}").parse().unwrap(), None);
        }
        let further: Origin = "http://further".parse().unwrap();
        assert_eq!(trials.most_at(&further), None);
        for _ in 0..5 {
            trials.note(&further, Some(&failure(ProblemReason::DigestMismatch)));
        }
        assert!(!trials.is_left_out(&further));
    }
}
