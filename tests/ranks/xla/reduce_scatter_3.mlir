module @reduce_scatter attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 2 : i32} {
  func.func public @main(%x: tensor<5x5x2xf64> {mhlo.sharding = "{manual}"}) -> (tensor<5x5x2xf64> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}) {
    %y = "stablehlo.reduce_scatter"(%x) <{replica_groups = dense<[[0], [1]]> : tensor<2x1xi64>, scatter_dimension = 1 : i64}> ({
    ^bb0(%a: tensor<f64>, %b: tensor<f64>):
      %c = stablehlo.multiply %a, %b : tensor<f64>
      stablehlo.return %c : tensor<f64>
  }) {mhlo.sharding = "{manual}"} : (tensor<5x5x2xf64>) -> tensor<5x5x2xf64>
    %r = stablehlo.replica_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    %p = stablehlo.partition_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    return %y, %r, %p : tensor<5x5x2xf64>, tensor<ui32>, tensor<ui32>
  }
}
