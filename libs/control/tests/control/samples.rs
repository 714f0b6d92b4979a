use control::{Control, Sample, SampledRuns, SampledSources};
use jiff::SignedDuration;

use crate::support::{config, now, soon};

#[tokio::test]
async fn the_first_process_records_the_sample_of_a_minute_for_all() {
    let config = config().await;
    let ours = Control::connect(&config).await.unwrap();
    let theirs = Control::connect(&config).await.unwrap();
    let minute = now();
    let sample = |pending, at| Sample {
        at,
        runs: SampledRuns::default(),
        sources: SampledSources::default(),
        pending,
        stored: None,
        bytes: None,
    };
    let (first, second) = (sample(1, minute), sample(2, minute));
    let (one, other) = tokio::join!(ours.samples().record(&first), theirs.samples().record(&second));
    assert!(one.unwrap() != other.unwrap(), "one of the two is recorded");
    let next = minute + SignedDuration::from_secs(60);
    assert!(theirs.samples().record(&sample(3, next)).await.unwrap());
    assert!(!ours.samples().record(&sample(4, next)).await.unwrap());
    let mut view = ours.samples().view().await.unwrap();
    let both = soon("both are seen", view.wait_for(|view| (view.all().len() == 2).then(|| view.all()))).await;
    assert_eq!(both[1].pending, 3, "the oldest comes first");
}
