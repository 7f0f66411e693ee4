//! Calls the model on an image of equal pixels and prints the probabilities of each of a batch of two.
#![forbid(unsafe_op_in_unsafe_fn)]

mod net {
    include!(concat!(env!("OUT_DIR"), "/net/net.rs"));
}

fn main() -> Result<(), net::Error> {
    let mut probabilities = [0.0; 20];
    net::Net::new().run(&[0.5; 2 * 16 * 16 * 3], &mut probabilities)?;
    for image in probabilities.chunks(10) {
        println!("{}", image.iter().map(|p| format!("{p:.5}")).collect::<Vec<_>>().join(" "));
    }
    Ok(())
}
