module @all_reduce attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 2 : i32} {
  func.func public @main(%x: tensor<5xui8> {mhlo.sharding = "{manual}"}) -> (tensor<5xui8> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}, tensor<ui32> {mhlo.sharding = "{manual}"}) {
    %y = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0], [1]]> : tensor<2x1xi64>}> ({
    ^bb0(%a: tensor<ui8>, %b: tensor<ui8>):
      %c = stablehlo.maximum %a, %b : tensor<ui8>
      stablehlo.return %c : tensor<ui8>
  }) {mhlo.sharding = "{manual}"} : (tensor<5xui8>) -> tensor<5xui8>
    %r = stablehlo.replica_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    %p = stablehlo.partition_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    return %y, %r, %p : tensor<5xui8>, tensor<ui32>, tensor<ui32>
  }
}
