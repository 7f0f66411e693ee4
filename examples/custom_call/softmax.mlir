// A layer whose softmax is a function in C: `softmax` of `softmax.c`.
module @layer {
  func.func public @main(%x: tensor<4x8xf32>, %w: tensor<8x10xf32>) -> tensor<4x10xf32> {
    %scores = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x10xf32>) -> tensor<4x10xf32>
    %shares = stablehlo.custom_call @softmax(%scores) {
      api_version = 3 : i32, backend_config = "axis=1"
    } : (tensor<4x10xf32>) -> tensor<4x10xf32>
    return %shares : tensor<4x10xf32>
  }
}
