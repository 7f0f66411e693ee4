! Calls the model on an image of equal pixels and prints the probabilities of each of a batch of two.
!   tfaot compile model.pb -o . --name net --emit obj,fortran && gfortran net.f90 main.f90 net.o -o classify
program classify
  use, intrinsic :: iso_c_binding
  use net
  implicit none
  real(c_float) :: image(3, 16, 16, 2), probabilities(10, 2)
  integer(c_int8_t), allocatable :: workspace(:)
  integer(c_int) :: code

  allocate(workspace(net_workspace_bytes))
  image = 0.5
  code = net_run(image, probabilities, workspace)
  if (code /= 0) stop 1
  print '(10(f7.5,:,1x))', probabilities
end program
