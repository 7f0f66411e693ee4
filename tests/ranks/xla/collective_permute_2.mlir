module @collective_permute attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%x: tensor<2xui8> {mhlo.sharding = "{manual}"}) -> (tensor<2xui8> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}) {
    %y = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[1, 0], [2, 3], [3, 2]]> : tensor<3x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>}>  {mhlo.sharding = "{manual}"} : (tensor<2xui8>) -> tensor<2xui8>
    %r = stablehlo.replica_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    %p = stablehlo.partition_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    return %y, %r, %p : tensor<2xui8>, tensor<ui32>, tensor<ui32>
  }
}
