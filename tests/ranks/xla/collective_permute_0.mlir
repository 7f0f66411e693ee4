module @collective_permute attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 4 : i32} {
  func.func public @main(%x: tensor<3x4xf32> {mhlo.sharding = "{manual}"}) -> (tensor<3x4xf32> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}) {
    %y = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 1], [2, 2], [3, 0]]> : tensor<3x2xi64>}>  {mhlo.sharding = "{manual}"} : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %r = stablehlo.replica_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    %p = stablehlo.partition_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    return %y, %r, %p : tensor<3x4xf32>, tensor<ui32>, tensor<ui32>
  }
}
