//! Maps of credit over images: by superpixels, and on one scale or each on its own.
#![allow(clippy::unwrap_used)]

#[path = "shared/place.rs"]
mod place;

use ndarray::Array4;
use place::{Place, linear};
use serde_json::Value;

/// Two images of 1x8x8, dark on the left and bright on the right, and a model of them.
fn images() -> Place {
    let place = Place::new();
    place.image_model("model.onnx");
    let images = Array4::from_shape_fn((2, 1, 8, 8), |(i, _, y, x)| {
        (if x < 4 { 0.1 } else { 0.9 }) + 0.01 * (i + y % 3) as f32
    });
    ndarray_npy::write_npy(place.file("images.npy"), &images).unwrap();
    place
}

/// The numbers of a page.
fn page(place: &Place, file: &str) -> Value {
    let html = place.read(file);
    let (_, data) = html.split_once("id=\"data\">").unwrap();
    serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn maps_by_superpixels_and_on_one_scale_are_a_switch() {
    let place = images();
    let explain = "explain -m model.onnx images.npy --method ig,gradient-input,occlusion --target 0 -q -o";
    for (flags, out) in [("", "plain"), ("--superpixels 6", "regions"), ("--shared-scale", "shared")] {
        let done = place.run(&format!("{explain} {out} {flags}"));
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    let map = |out: &str, method: &str| {
        std::fs::read(place.file(&format!("{out}/heatmaps/0000-{method}-target0.png"))).unwrap()
    };
    assert_ne!(map("plain", "ig"), map("regions", "ig"));
    // Of methods that promise a sum only one is here, so a shared scale is its own.
    assert_eq!(map("plain", "gradient-input"), map("shared", "gradient-input"));
    // Every page has both views; the flags say which comes first. Six superpixels are fewer than the usual fifty.
    let most = |page: &Value| page["examples"][0]["superpixels"]["high"].as_f64().unwrap();
    let (plain, regions) = (page(&place, "plain/report.html"), page(&place, "regions/report.html"));
    assert_eq!(
        (&plain["by_superpixels"], &regions["by_superpixels"]),
        (&Value::Bool(false), &Value::Bool(true))
    );
    assert!(most(&regions) < 12.0 && most(&plain) > 12.0, "{} {}", most(&regions), most(&plain));
    assert_eq!(page(&place, "shared/report.html")["shared_scale"], Value::Bool(true));
    // A page that is made anew keeps what was asked for, or takes another number.
    for (line, regions) in
        [("report regions", true), ("report plain", false), ("report plain --superpixels 9", true)]
    {
        assert!(place.run(line).status.success(), "{line}");
        let file = format!("{}/report.html", line.split(' ').nth(1).unwrap());
        assert_eq!(page(&place, &file)["by_superpixels"], Value::Bool(regions), "{line}");
    }
    // Credit is the same however it is shown.
    let values = |out: &str| std::fs::read(place.file(&format!("{out}/ig/explanations.npz"))).unwrap();
    assert_eq!(values("plain"), values("regions"));
}

#[test]
fn maps_of_what_is_no_image_are_refused() {
    let place = images();
    linear(&[1.0, 2.0], 2).save(place.file("table.onnx")).unwrap();
    ndarray_npy::write_npy(place.file("rows.npy"), &ndarray::Array2::<f32>::ones((3, 2))).unwrap();
    for flag in ["--superpixels 5", "--shared-scale"] {
        let name = flag.split(' ').next().unwrap();
        let told = place.refused(&format!("explain -m table.onnx rows.npy {flag} -o out"));
        assert!(told.contains(&format!("{name} makes no difference to inputs of shape [2]")), "{told}");
        assert!(!place.file("out").exists());
        let told = place.refused(&format!("explain -m model.onnx images.npy {flag}"));
        assert!(told.contains(&format!("{name} is for the pictures in a folder")), "{told}");
    }
    let told = place.refused("explain -m model.onnx images.npy --superpixels 0 -o out");
    assert!(told.contains("0 is not in 1..=10000"), "{told}");
}
