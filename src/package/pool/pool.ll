
%struct.tfaot_pool_place = type { ptr, i32 }
%struct.tfaot_pool_line = type { i64, i64, [112 x i8] }

; Function Attrs: nounwind
define hidden ptr @tfaot_pool_start(i32 noundef %num_threads) local_unnamed_addr #0 {
entry:
  %call.i = tail call ptr @calloc(i64 noundef 1, i64 noundef 592) #4
  %0 = tail call i32 @llvm.smax.i32(i32 %num_threads, i32 1)
  %cond.i = add nsw i32 %0, -1
  %tobool.not.i = icmp eq ptr %call.i, null
  br i1 %tobool.not.i, label %tfaot_pool_new.exit, label %if.end.i

if.end.i:                                         ; preds = %entry
  %call1.i = tail call i32 @sem_init(ptr noundef nonnull %call.i, i32 noundef 0, i32 noundef 0) #4
  %cmp2.not.i = icmp eq i32 %call1.i, 0
  br i1 %cmp2.not.i, label %if.end4.i, label %if.then3.i

if.then3.i:                                       ; preds = %if.end.i
  tail call void @free(ptr noundef nonnull %call.i) #4
  br label %tfaot_pool_new.exit

if.end4.i:                                        ; preds = %if.end.i
  %call5.i = tail call i32 @getpid() #4
  %process.i = getelementptr inbounds nuw i8, ptr %call.i, i64 156
  store i32 %call5.i, ptr %process.i, align 4
  %1 = zext nneg i32 %0 to i64
  %call6.i = tail call ptr @calloc(i64 noundef %1, i64 noundef 8) #4
  %threads.i = getelementptr inbounds nuw i8, ptr %call.i, i64 128
  store ptr %call6.i, ptr %threads.i, align 16
  %call9.i = tail call ptr @calloc(i64 noundef %1, i64 noundef 16) #4
  %places.i = getelementptr inbounds nuw i8, ptr %call.i, i64 136
  store ptr %call9.i, ptr %places.i, align 8
  %call12.i = tail call ptr @calloc(i64 noundef %1, i64 noundef 128) #4
  %lines.i = getelementptr inbounds nuw i8, ptr %call.i, i64 144
  store ptr %call12.i, ptr %lines.i, align 16
  %2 = load ptr, ptr %threads.i, align 16
  %tobool14.not.i = icmp eq ptr %2, null
  br i1 %tobool14.not.i, label %if.end46.i, label %land.lhs.true.i

land.lhs.true.i:                                  ; preds = %if.end4.i
  %3 = load ptr, ptr %places.i, align 8
  %tobool16.not.i = icmp ne ptr %3, null
  %tobool18.i = icmp ne ptr %call12.i, null
  %spec.select.i = select i1 %tobool16.not.i, i1 %tobool18.i, i1 false
  br i1 %spec.select.i, label %land.rhs20.lr.ph.i, label %if.end46.i

land.rhs20.lr.ph.i:                               ; preds = %land.lhs.true.i
  %count.i = getelementptr inbounds nuw i8, ptr %call.i, i64 152
  %4 = load i32, ptr %count.i, align 8
  %cmp21.i1 = icmp slt i32 %4, %cond.i
  br i1 %cmp21.i1, label %while.body.i, label %land.lhs.true41.i

while.body.i:                                     ; preds = %land.rhs20.lr.ph.i, %if.end38.i
  %5 = phi i32 [ %inc.i, %if.end38.i ], [ %4, %land.rhs20.lr.ph.i ]
  %6 = load ptr, ptr %places.i, align 8
  %idxprom.i = sext i32 %5 to i64
  %arrayidx.i = getelementptr inbounds %struct.tfaot_pool_place, ptr %6, i64 %idxprom.i
  store ptr %call.i, ptr %arrayidx.i, align 8
  %add29.i = add nsw i32 %5, 1
  %number.i = getelementptr inbounds nuw i8, ptr %arrayidx.i, i64 8
  store i32 %add29.i, ptr %number.i, align 8
  %7 = load ptr, ptr %threads.i, align 16
  %arrayidx33.i = getelementptr inbounds ptr, ptr %7, i64 %idxprom.i
  %call34.i = tail call i32 @pthread_create(ptr noundef %arrayidx33.i, ptr noundef null, ptr noundef nonnull @tfaot_pool_thread, ptr noundef nonnull %arrayidx.i) #4
  %cmp35.not.i = icmp eq i32 %call34.i, 0
  br i1 %cmp35.not.i, label %if.end38.i, label %land.lhs.true41.i

if.end38.i:                                       ; preds = %while.body.i
  %8 = load i32, ptr %count.i, align 8
  %inc.i = add nsw i32 %8, 1
  store i32 %inc.i, ptr %count.i, align 8
  %cmp21.i = icmp slt i32 %inc.i, %cond.i
  br i1 %cmp21.i, label %while.body.i, label %land.lhs.true41.i

land.lhs.true41.i:                                ; preds = %if.end38.i, %while.body.i, %land.rhs20.lr.ph.i
  %9 = load i32, ptr %count.i, align 8
  %cmp43.i = icmp eq i32 %9, %cond.i
  br i1 %cmp43.i, label %tfaot_pool_new.exit, label %if.end46.i

if.end46.i:                                       ; preds = %land.lhs.true41.i, %land.lhs.true.i, %if.end4.i
  tail call fastcc void @tfaot_pool_free(ptr noundef nonnull %call.i) #5
  br label %tfaot_pool_new.exit

tfaot_pool_new.exit:                              ; preds = %entry, %if.then3.i, %land.lhs.true41.i, %if.end46.i
  %retval.0.i = phi ptr [ null, %if.then3.i ], [ null, %entry ], [ null, %if.end46.i ], [ %call.i, %land.lhs.true41.i ]
  ret ptr %retval.0.i
}

; Function Attrs: nounwind
define hidden void @tfaot_pool_end(ptr noundef %pool) local_unnamed_addr #0 {
entry:
  tail call fastcc void @tfaot_pool_free(ptr noundef %pool) #5
  ret void
}

; Function Attrs: inlinehint nounwind
define internal fastcc void @tfaot_pool_free(ptr noundef %pool) unnamed_addr #1 {
entry:
  %tobool.not = icmp eq ptr %pool, null
  br i1 %tobool.not, label %cleanup, label %if.end

if.end:                                           ; preds = %entry
  %count = getelementptr inbounds nuw i8, ptr %pool, i64 152
  %0 = load i32, ptr %count, align 8
  %cmp = icmp sgt i32 %0, 0
  br i1 %cmp, label %land.lhs.true, label %if.end7

land.lhs.true:                                    ; preds = %if.end
  %process = getelementptr inbounds nuw i8, ptr %pool, i64 156
  %1 = load i32, ptr %process, align 4
  %call = tail call i32 @getpid() #4
  %cmp1 = icmp eq i32 %1, %call
  br i1 %cmp1, label %if.then2, label %if.end7

if.then2:                                         ; preds = %land.lhs.true
  %task = getelementptr inbounds nuw i8, ptr %pool, i64 296
  store ptr null, ptr %task, align 8
  %round1.i = getelementptr inbounds nuw i8, ptr %pool, i64 288
  %2 = load atomic i64, ptr %round1.i monotonic, align 16
  %add.i = add i64 %2, 1
  store atomic i64 %add.i, ptr %round1.i seq_cst, align 16
  %asleep.i = getelementptr inbounds nuw i8, ptr %pool, i64 456
  %3 = load atomic i32, ptr %asleep.i seq_cst, align 8
  %cmp.i = icmp sgt i32 %3, 0
  br i1 %cmp.i, label %if.then.i, label %tfaot_pool_announce.exit

if.then.i:                                        ; preds = %if.then2
  %4 = atomicrmw xchg ptr %asleep.i, i32 0 seq_cst, align 8
  %cmp815.i = icmp sgt i32 %4, 0
  br i1 %cmp815.i, label %for.body.i, label %tfaot_pool_announce.exit

for.body.i:                                       ; preds = %if.then.i, %for.body.i
  %asleep4.016.i = phi i32 [ %dec.i, %for.body.i ], [ %4, %if.then.i ]
  %call.i = tail call i32 @sem_post(ptr noundef nonnull %pool) #4
  %dec.i = add nsw i32 %asleep4.016.i, -1
  %cmp8.i = icmp sgt i32 %asleep4.016.i, 1
  br i1 %cmp8.i, label %for.body.i, label %tfaot_pool_announce.exit

tfaot_pool_announce.exit:                         ; preds = %for.body.i, %if.then2, %if.then.i
  %5 = load i32, ptr %count, align 8
  %cmp523 = icmp sgt i32 %5, 0
  br i1 %cmp523, label %for.body.lr.ph, label %if.end7

for.body.lr.ph:                                   ; preds = %tfaot_pool_announce.exit
  %threads = getelementptr inbounds nuw i8, ptr %pool, i64 128
  br label %for.body

for.body:                                         ; preds = %for.body.lr.ph, %for.body
  %indvars.iv = phi i64 [ 0, %for.body.lr.ph ], [ %indvars.iv.next, %for.body ]
  %6 = load ptr, ptr %threads, align 16
  %arrayidx = getelementptr inbounds nuw ptr, ptr %6, i64 %indvars.iv
  %7 = load ptr, ptr %arrayidx, align 8
  %call6 = tail call i32 @pthread_join(ptr noundef %7, ptr noundef null) #4
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %8 = load i32, ptr %count, align 8
  %9 = sext i32 %8 to i64
  %cmp5 = icmp slt i64 %indvars.iv.next, %9
  br i1 %cmp5, label %for.body, label %if.end7

if.end7:                                          ; preds = %for.body, %tfaot_pool_announce.exit, %land.lhs.true, %if.end
  %call8 = tail call i32 @sem_destroy(ptr noundef nonnull %pool) #4
  %threads9 = getelementptr inbounds nuw i8, ptr %pool, i64 128
  %10 = load ptr, ptr %threads9, align 16
  tail call void @free(ptr noundef %10) #4
  %places = getelementptr inbounds nuw i8, ptr %pool, i64 136
  %11 = load ptr, ptr %places, align 8
  tail call void @free(ptr noundef %11) #4
  %lines = getelementptr inbounds nuw i8, ptr %pool, i64 144
  %12 = load ptr, ptr %lines, align 16
  tail call void @free(ptr noundef %12) #4
  tail call void @free(ptr noundef nonnull %pool) #4
  br label %cleanup

cleanup:                                          ; preds = %entry, %if.end7
  ret void
}

; Function Attrs: nounwind
define hidden void @tfaot_pool_share(ptr noundef %pool, i64 noundef %n, ptr noundef %task, ptr noundef %closure) local_unnamed_addr #0 {
entry:
  %tobool.not.i = icmp eq ptr %pool, null
  br i1 %tobool.not.i, label %if.then.i, label %lor.lhs.false.i

lor.lhs.false.i:                                  ; preds = %entry
  %count.i = getelementptr inbounds nuw i8, ptr %pool, i64 152
  %0 = load i32, ptr %count.i, align 8
  %cmp.i = icmp eq i32 %0, 0
  %cmp2.i = icmp slt i64 %n, 2
  %or.cond.i = or i1 %cmp2.i, %cmp.i
  br i1 %or.cond.i, label %if.then.i, label %lor.lhs.false3.i

lor.lhs.false3.i:                                 ; preds = %lor.lhs.false.i
  %busy.i = getelementptr inbounds nuw i8, ptr %pool, i64 588
  %1 = load atomic i32, ptr %busy.i monotonic, align 4
  %tobool4.not.i = icmp eq i32 %1, 0
  br i1 %tobool4.not.i, label %lor.lhs.false5.i, label %if.then.i

lor.lhs.false5.i:                                 ; preds = %lor.lhs.false3.i
  %2 = atomicrmw xchg ptr %busy.i, i32 1 acquire, align 4
  %tobool8.not.i = icmp eq i32 %2, 0
  br i1 %tobool8.not.i, label %if.end11.i, label %if.then.i

if.then.i:                                        ; preds = %lor.lhs.false5.i, %lor.lhs.false3.i, %lor.lhs.false.i, %entry
  %cmp9.i = icmp sgt i64 %n, 0
  br i1 %cmp9.i, label %if.then10.i, label %tfaot_pool_parallel_for.exit

if.then10.i:                                      ; preds = %if.then.i
  tail call void %task(ptr noundef %closure, i64 noundef 0, i64 noundef %n) #4
  br label %tfaot_pool_parallel_for.exit

if.end11.i:                                       ; preds = %lor.lhs.false5.i
  %task12.i = getelementptr inbounds nuw i8, ptr %pool, i64 296
  store ptr %task, ptr %task12.i, align 8
  %closure13.i = getelementptr inbounds nuw i8, ptr %pool, i64 304
  store ptr %closure, ptr %closure13.i, align 16
  %total.i = getelementptr inbounds nuw i8, ptr %pool, i64 312
  store i64 %n, ptr %total.i, align 8
  %shr.i = lshr i64 %n, 31
  %add.i = add nuw nsw i64 %shr.i, 1
  %unit.i = getelementptr inbounds nuw i8, ptr %pool, i64 320
  store i64 %add.i, ptr %unit.i, align 16
  %round1.i.i = getelementptr inbounds nuw i8, ptr %pool, i64 288
  %3 = load atomic i64, ptr %round1.i.i monotonic, align 16
  %add.i.i = add i64 %3, 1
  store atomic i64 %add.i.i, ptr %round1.i.i seq_cst, align 16
  %asleep.i.i = getelementptr inbounds nuw i8, ptr %pool, i64 456
  %4 = load atomic i32, ptr %asleep.i.i seq_cst, align 8
  %cmp.i.i = icmp sgt i32 %4, 0
  br i1 %cmp.i.i, label %if.then.i.i, label %tfaot_pool_announce.exit.i

if.then.i.i:                                      ; preds = %if.end11.i
  %5 = atomicrmw xchg ptr %asleep.i.i, i32 0 seq_cst, align 8
  %cmp815.i.i = icmp sgt i32 %5, 0
  br i1 %cmp815.i.i, label %for.body.i.i, label %tfaot_pool_announce.exit.i

for.body.i.i:                                     ; preds = %if.then.i.i, %for.body.i.i
  %asleep4.016.i.i = phi i32 [ %dec.i.i, %for.body.i.i ], [ %5, %if.then.i.i ]
  %call.i.i = tail call i32 @sem_post(ptr noundef nonnull %pool) #4
  %dec.i.i = add nsw i32 %asleep4.016.i.i, -1
  %cmp8.i.i = icmp sgt i32 %asleep4.016.i.i, 1
  br i1 %cmp8.i.i, label %for.body.i.i, label %tfaot_pool_announce.exit.i

tfaot_pool_announce.exit.i:                       ; preds = %for.body.i.i, %if.then.i.i, %if.end11.i
  %6 = load i32, ptr %count.i, align 8
  %conv.i.i = sext i32 %6 to i64
  %add.i41.i = add nsw i64 %conv.i.i, 1
  %shl.i.i = shl i64 %add.i.i, 32
  %7 = load i64, ptr %total.i, align 8
  %8 = load i64, ptr %unit.i, align 16
  %add1.i.i = add i64 %7, -1
  %sub.i.i = add i64 %add1.i.i, %8
  %div.i.i = udiv i64 %sub.i.i, %8
  %cmp111.not.i.i = icmp eq i64 %add.i41.i, 0
  br i1 %cmp111.not.i.i, label %tfaot_pool_work.exit.i, label %for.body.lr.ph.i.i

for.body.lr.ph.i.i:                               ; preds = %tfaot_pool_announce.exit.i
  %rem.i.i.i = urem i64 %div.i.i, %add.i41.i
  %div.i.i.i = udiv i64 %div.i.i, %add.i41.i
  %lines.i.i = getelementptr inbounds nuw i8, ptr %pool, i64 144
  %shr14.i.i = and i64 %add.i.i, 4294967295
  br label %for.body.i42.i

for.body.i42.i:                                   ; preds = %for.end.i.i, %for.body.lr.ph.i.i
  %i.0112.i.i = phi i64 [ 0, %for.body.lr.ph.i.i ], [ %add5.i.i, %for.end.i.i ]
  %mul.i.i.i = mul i64 %i.0112.i.i, %div.i.i.i
  %cond.i.i.i = tail call i64 @llvm.umin.i64(i64 %i.0112.i.i, i64 %rem.i.i.i)
  %add.i.i.i = add i64 %mul.i.i.i, %cond.i.i.i
  %add5.i.i = add nuw i64 %i.0112.i.i, 1
  %mul.i108.i.i = mul i64 %add5.i.i, %div.i.i.i
  %cond.i109.i.i = tail call i64 @llvm.umin.i64(i64 %add5.i.i, i64 %rem.i.i.i)
  %add.i110.i.i = add i64 %mul.i108.i.i, %cond.i109.i.i
  %sub7.i.i = sub i64 %add.i110.i.i, %add.i.i.i
  %9 = load ptr, ptr %lines.i.i, align 16
  %arrayidx.i.i = getelementptr inbounds nuw %struct.tfaot_pool_line, ptr %9, i64 %i.0112.i.i
  %10 = load atomic i64, ptr %arrayidx.i.i monotonic, align 8
  %cmp8.i43.i = icmp eq i64 %add.i110.i.i, %add.i.i.i
  %cmp10.i.i = icmp eq i64 %i.0112.i.i, 0
  %or.cond.i.i = and i1 %cmp10.i.i, %cmp8.i43.i
  br i1 %or.cond.i.i, label %if.then.i44.i, label %if.end.i.i

if.then.i44.i:                                    ; preds = %for.body.i42.i
  store atomic i64 %shl.i.i, ptr %arrayidx.i.i monotonic, align 8
  br label %if.end.i.i

if.end.i.i:                                       ; preds = %if.then.i44.i, %for.body.i42.i
  %div24105.i.i = lshr i64 %sub7.i.i, 2
  br label %for.cond12.i.i

for.cond12.i.i:                                   ; preds = %cleanup.i.i, %if.end.i.i
  %was.0.i.i = phi i64 [ %10, %if.end.i.i ], [ %was.2.i.i, %cleanup.i.i ]
  %shr.i.i = lshr i64 %was.0.i.i, 32
  %cmp15.i.i = icmp eq i64 %shr.i.i, %shr14.i.i
  %and.i.i = and i64 %was.0.i.i, 4294967295
  %cond.i.i = select i1 %cmp15.i.i, i64 %and.i.i, i64 0
  %sub17.i.i = sub i64 %sub7.i.i, %cond.i.i
  %11 = or i64 %cond.i.i, %i.0112.i.i
  %or.cond60.i.i = icmp eq i64 %11, 0
  %div27104.i.i = lshr i64 %sub17.i.i, 1
  %div24105.pn.i.i = select i1 %or.cond60.i.i, i64 %div24105.i.i, i64 %div27104.i.i
  %cond30.i.i = sub i64 %sub17.i.i, %div24105.pn.i.i
  %cmp31.not.not.i.i = icmp ult i64 %cond.i.i, %sub7.i.i
  br i1 %cmp31.not.not.i.i, label %if.end34.i.i, label %cleanup.i.i

if.end34.i.i:                                     ; preds = %for.cond12.i.i
  %add36.i.i = add i64 %cond30.i.i, %cond.i.i
  %or.i.i = or i64 %add36.i.i, %shl.i.i
  %12 = cmpxchg weak ptr %arrayidx.i.i, i64 %was.0.i.i, i64 %or.i.i monotonic monotonic, align 8
  %13 = extractvalue { i64, i1 } %12, 1
  %14 = extractvalue { i64, i1 } %12, 0
  br i1 %13, label %if.end38.i.i, label %cleanup.i.i

if.end38.i.i:                                     ; preds = %if.end34.i.i
  %add39.i.i = add i64 %cond.i.i, %add.i.i.i
  %15 = load i64, ptr %unit.i, align 16
  %mul.i.i = mul nsw i64 %15, %add39.i.i
  %add42.i.i = add i64 %cond30.i.i, %add39.i.i
  %cmp43.i.i = icmp eq i64 %add42.i.i, %div.i.i
  br i1 %cmp43.i.i, label %cond.true45.i.i, label %cond.false47.i.i

cond.true45.i.i:                                  ; preds = %if.end38.i.i
  %16 = load i64, ptr %total.i, align 8
  br label %cond.end52.i.i

cond.false47.i.i:                                 ; preds = %if.end38.i.i
  %mul51.i.i = mul nsw i64 %15, %add42.i.i
  br label %cond.end52.i.i

cond.end52.i.i:                                   ; preds = %cond.false47.i.i, %cond.true45.i.i
  %cond53.i.i = phi i64 [ %16, %cond.true45.i.i ], [ %mul51.i.i, %cond.false47.i.i ]
  %17 = load ptr, ptr %task12.i, align 8
  %18 = load ptr, ptr %closure13.i, align 16
  tail call void %17(ptr noundef %18, i64 noundef %mul.i.i, i64 noundef %cond53.i.i) #4
  %19 = load atomic i64, ptr %arrayidx.i.i monotonic, align 8
  br label %cleanup.i.i

cleanup.i.i:                                      ; preds = %cond.end52.i.i, %if.end34.i.i, %for.cond12.i.i
  %was.2.i.i = phi i64 [ %was.0.i.i, %for.cond12.i.i ], [ %19, %cond.end52.i.i ], [ %14, %if.end34.i.i ]
  br i1 %cmp31.not.not.i.i, label %for.cond12.i.i, label %for.end.i.i

for.end.i.i:                                      ; preds = %cleanup.i.i
  %exitcond.not.i.i = icmp eq i64 %i.0112.i.i, %conv.i.i
  br i1 %exitcond.not.i.i, label %tfaot_pool_work.exit.i, label %for.body.i42.i

tfaot_pool_work.exit.i:                           ; preds = %for.end.i.i, %tfaot_pool_announce.exit.i
  %20 = load i32, ptr %count.i, align 8
  %cmp15.not54.i = icmp slt i32 %20, 1
  br i1 %cmp15.not54.i, label %for.end.i, label %for.body.lr.ph.i

for.body.lr.ph.i:                                 ; preds = %tfaot_pool_work.exit.i
  %lines.i = getelementptr inbounds nuw i8, ptr %pool, i64 144
  %mul.i45.i = shl i64 %add.i.i, 1
  %and.i52.i = and i64 %add.i.i, 4294967295
  br label %for.body.i

for.body.i:                                       ; preds = %tfaot_pool_end_round.exit.i, %for.body.lr.ph.i
  %indvars.iv.i = phi i64 [ 1, %for.body.lr.ph.i ], [ %indvars.iv.next.i, %tfaot_pool_end_round.exit.i ]
  %21 = load ptr, ptr %lines.i, align 16
  %arrayidx.i = getelementptr inbounds nuw %struct.tfaot_pool_line, ptr %21, i64 %indvars.iv.i
  %at.i.i = getelementptr inbounds nuw i8, ptr %arrayidx.i, i64 8
  %22 = load atomic i64, ptr %at.i.i acquire, align 8
  %cmp.i46.i = icmp ult i64 %22, %mul.i45.i
  br i1 %cmp.i46.i, label %land.lhs.true.i.i, label %if.end8.i.i

land.lhs.true.i.i:                                ; preds = %for.body.i
  %23 = cmpxchg ptr %at.i.i, i64 %22, i64 %mul.i45.i acquire acquire, align 8
  %24 = extractvalue { i64, i1 } %23, 1
  br i1 %24, label %if.then.i50.i, label %if.end8.i.i

if.then.i50.i:                                    ; preds = %land.lhs.true.i.i
  %25 = load atomic i64, ptr %arrayidx.i monotonic, align 8
  %shr.i51.i = lshr i64 %25, 32
  %cmp4.not.i.i = icmp eq i64 %shr.i51.i, %and.i52.i
  br i1 %cmp4.not.i.i, label %tfaot_pool_end_round.exit.i, label %if.then5.i.i

if.then5.i.i:                                     ; preds = %if.then.i50.i
  store atomic i64 %shl.i.i, ptr %arrayidx.i monotonic, align 8
  br label %tfaot_pool_end_round.exit.i

if.end8.i.i:                                      ; preds = %land.lhs.true.i.i, %for.body.i
  %26 = load atomic i64, ptr %at.i.i acquire, align 8
  %cmp12.not26.i.i = icmp eq i64 %26, %mul.i45.i
  br i1 %cmp12.not26.i.i, label %tfaot_pool_end_round.exit.i, label %while.body.i.i

while.body.i.i:                                   ; preds = %if.end8.i.i, %if.end15.i.i
  %looks.027.i.i = phi i32 [ %inc.i47.i, %if.end15.i.i ], [ 0, %if.end8.i.i ]
  %inc.i47.i = add nuw nsw i32 %looks.027.i.i, 1
  %cmp13.i.i = icmp samesign ult i32 %looks.027.i.i, 4000
  br i1 %cmp13.i.i, label %if.then14.i.i, label %if.else.i.i

if.then14.i.i:                                    ; preds = %while.body.i.i
  tail call void @tfaot_relax() #4
  br label %if.end15.i.i

if.else.i.i:                                      ; preds = %while.body.i.i
  %call.i48.i = tail call i32 @sched_yield() #4
  br label %if.end15.i.i

if.end15.i.i:                                     ; preds = %if.else.i.i, %if.then14.i.i
  %27 = load atomic i64, ptr %at.i.i acquire, align 8
  %cmp12.not.i.i = icmp eq i64 %27, %mul.i45.i
  br i1 %cmp12.not.i.i, label %tfaot_pool_end_round.exit.i, label %while.body.i.i

tfaot_pool_end_round.exit.i:                      ; preds = %if.end15.i.i, %if.end8.i.i, %if.then5.i.i, %if.then.i50.i
  %indvars.iv.next.i = add nuw nsw i64 %indvars.iv.i, 1
  %28 = load i32, ptr %count.i, align 8
  %29 = sext i32 %28 to i64
  %cmp15.not.not.i = icmp slt i64 %indvars.iv.i, %29
  br i1 %cmp15.not.not.i, label %for.body.i, label %for.end.i

for.end.i:                                        ; preds = %tfaot_pool_end_round.exit.i, %tfaot_pool_work.exit.i
  store atomic i32 0, ptr %busy.i release, align 4
  br label %tfaot_pool_parallel_for.exit

tfaot_pool_parallel_for.exit:                     ; preds = %if.then.i, %if.then10.i, %for.end.i
  ret void
}

declare ptr @calloc(i64 noundef, i64 noundef) local_unnamed_addr #2

declare i32 @sem_init(ptr noundef, i32 noundef, i32 noundef) local_unnamed_addr #2

declare void @free(ptr noundef) local_unnamed_addr #2

declare i32 @getpid() local_unnamed_addr #2

declare i32 @pthread_create(ptr noundef, ptr noundef, ptr noundef, ptr noundef) local_unnamed_addr #2

; Function Attrs: inlinehint nounwind
define internal noalias noundef ptr @tfaot_pool_thread(ptr noundef readonly captures(none) %place) #1 {
entry:
  %0 = load ptr, ptr %place, align 8
  %number = getelementptr inbounds nuw i8, ptr %place, i64 8
  %1 = load i32, ptr %number, align 8
  %lines = getelementptr inbounds nuw i8, ptr %0, i64 144
  %2 = load ptr, ptr %lines, align 16
  %idxprom = sext i32 %1 to i64
  %arrayidx = getelementptr inbounds %struct.tfaot_pool_line, ptr %2, i64 %idxprom
  %at2 = getelementptr inbounds nuw i8, ptr %arrayidx, i64 8
  %round = getelementptr inbounds nuw i8, ptr %0, i64 288
  %round5 = getelementptr inbounds nuw i8, ptr %0, i64 288
  %asleep1.i = getelementptr inbounds nuw i8, ptr %0, i64 456
  %task = getelementptr inbounds nuw i8, ptr %0, i64 296
  %count.i = getelementptr inbounds nuw i8, ptr %0, i64 152
  %total.i = getelementptr inbounds nuw i8, ptr %0, i64 312
  %unit.i = getelementptr inbounds nuw i8, ptr %0, i64 320
  %closure.i = getelementptr inbounds nuw i8, ptr %0, i64 304
  br label %for.cond

for.cond:                                         ; preds = %for.cond.backedge, %entry
  %seen.0 = phi i64 [ 0, %entry ], [ %12, %for.cond.backedge ]
  br label %land.rhs

land.rhs:                                         ; preds = %for.cond, %for.body
  %looks.045 = phi i32 [ 0, %for.cond ], [ %inc, %for.body ]
  %3 = load atomic i64, ptr %round acquire, align 16
  %cmp4 = icmp eq i64 %3, %seen.0
  br i1 %cmp4, label %for.body, label %for.end

for.body:                                         ; preds = %land.rhs
  tail call void @tfaot_relax() #4
  %inc = add nuw nsw i32 %looks.045, 1
  %exitcond.not = icmp eq i32 %inc, 4000
  br i1 %exitcond.not, label %for.end, label %land.rhs

for.end:                                          ; preds = %for.body, %land.rhs
  %4 = load atomic i64, ptr %round5 acquire, align 16
  %cmp746 = icmp eq i64 %4, %seen.0
  br i1 %cmp746, label %while.body, label %while.end

while.body:                                       ; preds = %for.end, %tfaot_pool_sleep.exit
  %5 = atomicrmw add ptr %asleep1.i, i32 1 seq_cst, align 8
  %6 = load atomic i64, ptr %round5 seq_cst, align 16
  %cmp.i = icmp ne i64 %6, %seen.0
  %cmp3.i = icmp ult i32 %5, 2147483647
  %or.cond.i = select i1 %cmp.i, i1 %cmp3.i, i1 false
  br i1 %or.cond.i, label %while.body.preheader.i, label %while.cond8.i.preheader

while.cond8.i.preheader:                          ; preds = %while.cond.i, %while.body
  br label %while.cond8.i

while.body.preheader.i:                           ; preds = %while.body
  %7 = add nuw nsw i32 %5, 1
  br label %while.body.i

while.cond.i:                                     ; preds = %while.body.i
  %8 = extractvalue { i32, i1 } %9, 0
  %cmp3.old.i = icmp sgt i32 %8, 0
  br i1 %cmp3.old.i, label %while.body.i, label %while.cond8.i.preheader

while.body.i:                                     ; preds = %while.cond.i, %while.body.preheader.i
  %asleep.0.i = phi i32 [ %8, %while.cond.i ], [ %7, %while.body.preheader.i ]
  %sub.i = add nsw i32 %asleep.0.i, -1
  %9 = cmpxchg weak ptr %asleep1.i, i32 %asleep.0.i, i32 %sub.i monotonic monotonic, align 8
  %10 = extractvalue { i32, i1 } %9, 1
  br i1 %10, label %tfaot_pool_sleep.exit, label %while.cond.i

while.cond8.i:                                    ; preds = %while.cond8.i.preheader, %while.cond8.i
  %call.i = tail call i32 @sem_wait(ptr noundef %0) #4
  %cmp9.not.i = icmp eq i32 %call.i, 0
  br i1 %cmp9.not.i, label %tfaot_pool_sleep.exit, label %while.cond8.i

tfaot_pool_sleep.exit:                            ; preds = %while.body.i, %while.cond8.i
  %11 = load atomic i64, ptr %round5 acquire, align 16
  %cmp7 = icmp eq i64 %11, %seen.0
  br i1 %cmp7, label %while.body, label %while.end

while.end:                                        ; preds = %tfaot_pool_sleep.exit, %for.end
  %12 = load atomic i64, ptr %round5 acquire, align 16
  %13 = load atomic i64, ptr %at2 monotonic, align 8
  %mul = shl i64 %12, 1
  %cmp11.not = icmp ult i64 %13, %mul
  br i1 %cmp11.not, label %if.end, label %cleanup

if.end:                                           ; preds = %while.end
  %add = or disjoint i64 %mul, 1
  %14 = cmpxchg ptr %at2, i64 %13, i64 %add acquire monotonic, align 8
  %15 = extractvalue { i64, i1 } %14, 1
  br i1 %15, label %if.end14, label %cleanup

if.end14:                                         ; preds = %if.end
  %16 = load ptr, ptr %task, align 8
  %tobool.not = icmp eq ptr %16, null
  br i1 %tobool.not, label %cleanup, label %if.end16

if.end16:                                         ; preds = %if.end14
  %17 = load i32, ptr %count.i, align 8
  %conv.i = sext i32 %17 to i64
  %add.i = add nsw i64 %conv.i, 1
  %shl.i = shl i64 %12, 32
  %18 = load i64, ptr %total.i, align 8
  %19 = load i64, ptr %unit.i, align 16
  %add1.i = add i64 %18, -1
  %sub.i42 = add i64 %add1.i, %19
  %div.i = udiv i64 %sub.i42, %19
  %cmp111.not.i = icmp eq i64 %add.i, 0
  br i1 %cmp111.not.i, label %tfaot_pool_work.exit, label %for.body.lr.ph.i

for.body.lr.ph.i:                                 ; preds = %if.end16
  %rem.i.i = urem i64 %div.i, %add.i
  %div.i.i = udiv i64 %div.i, %add.i
  %shr14.i = and i64 %12, 4294967295
  br label %for.body.i

for.body.i:                                       ; preds = %for.end.i, %for.body.lr.ph.i
  %i.0112.i = phi i64 [ 0, %for.body.lr.ph.i ], [ %inc.i, %for.end.i ]
  %add4.i = add i64 %i.0112.i, %idxprom
  %rem.i = urem i64 %add4.i, %add.i
  %mul.i.i = mul i64 %rem.i, %div.i.i
  %cond.i.i = tail call i64 @llvm.umin.i64(i64 %rem.i, i64 %rem.i.i)
  %add.i.i = add i64 %mul.i.i, %cond.i.i
  %add5.i = add nuw i64 %rem.i, 1
  %mul.i108.i = mul i64 %add5.i, %div.i.i
  %cond.i109.i = tail call i64 @llvm.umin.i64(i64 %add5.i, i64 %rem.i.i)
  %add.i110.i = add i64 %mul.i108.i, %cond.i109.i
  %sub7.i = sub i64 %add.i110.i, %add.i.i
  %20 = load ptr, ptr %lines, align 16
  %arrayidx.i = getelementptr inbounds nuw %struct.tfaot_pool_line, ptr %20, i64 %rem.i
  %21 = load atomic i64, ptr %arrayidx.i monotonic, align 8
  %cmp8.i = icmp eq i64 %add.i110.i, %add.i.i
  %cmp10.i = icmp eq i64 %i.0112.i, 0
  %or.cond.i43 = and i1 %cmp10.i, %cmp8.i
  br i1 %or.cond.i43, label %if.then.i, label %if.end.i

if.then.i:                                        ; preds = %for.body.i
  store atomic i64 %shl.i, ptr %arrayidx.i monotonic, align 8
  br label %if.end.i

if.end.i:                                         ; preds = %if.then.i, %for.body.i
  %div24105.i = lshr i64 %sub7.i, 2
  br label %for.cond12.i

for.cond12.i:                                     ; preds = %cleanup.i, %if.end.i
  %was.0.i = phi i64 [ %21, %if.end.i ], [ %was.2.i, %cleanup.i ]
  %shr.i = lshr i64 %was.0.i, 32
  %cmp15.i = icmp eq i64 %shr.i, %shr14.i
  %and.i = and i64 %was.0.i, 4294967295
  %cond.i = select i1 %cmp15.i, i64 %and.i, i64 0
  %sub17.i = sub i64 %sub7.i, %cond.i
  %22 = or i64 %cond.i, %i.0112.i
  %or.cond60.i = icmp eq i64 %22, 0
  %div27104.i = lshr i64 %sub17.i, 1
  %div24105.pn.i = select i1 %or.cond60.i, i64 %div24105.i, i64 %div27104.i
  %cond30.i = sub i64 %sub17.i, %div24105.pn.i
  %cmp31.not.not.i = icmp ult i64 %cond.i, %sub7.i
  br i1 %cmp31.not.not.i, label %if.end34.i, label %cleanup.i

if.end34.i:                                       ; preds = %for.cond12.i
  %add36.i = add i64 %cond30.i, %cond.i
  %or.i = or i64 %add36.i, %shl.i
  %23 = cmpxchg weak ptr %arrayidx.i, i64 %was.0.i, i64 %or.i monotonic monotonic, align 8
  %24 = extractvalue { i64, i1 } %23, 1
  %25 = extractvalue { i64, i1 } %23, 0
  br i1 %24, label %if.end38.i, label %cleanup.i

if.end38.i:                                       ; preds = %if.end34.i
  %add39.i = add i64 %cond.i, %add.i.i
  %26 = load i64, ptr %unit.i, align 16
  %mul.i = mul nsw i64 %26, %add39.i
  %add42.i = add i64 %cond30.i, %add39.i
  %cmp43.i = icmp eq i64 %add42.i, %div.i
  br i1 %cmp43.i, label %cond.true45.i, label %cond.false47.i

cond.true45.i:                                    ; preds = %if.end38.i
  %27 = load i64, ptr %total.i, align 8
  br label %cond.end52.i

cond.false47.i:                                   ; preds = %if.end38.i
  %mul51.i = mul nsw i64 %26, %add42.i
  br label %cond.end52.i

cond.end52.i:                                     ; preds = %cond.false47.i, %cond.true45.i
  %cond53.i = phi i64 [ %27, %cond.true45.i ], [ %mul51.i, %cond.false47.i ]
  %28 = load ptr, ptr %task, align 8
  %29 = load ptr, ptr %closure.i, align 16
  tail call void %28(ptr noundef %29, i64 noundef %mul.i, i64 noundef %cond53.i) #4
  %30 = load atomic i64, ptr %arrayidx.i monotonic, align 8
  br label %cleanup.i

cleanup.i:                                        ; preds = %cond.end52.i, %if.end34.i, %for.cond12.i
  %was.2.i = phi i64 [ %was.0.i, %for.cond12.i ], [ %30, %cond.end52.i ], [ %25, %if.end34.i ]
  br i1 %cmp31.not.not.i, label %for.cond12.i, label %for.end.i

for.end.i:                                        ; preds = %cleanup.i
  %inc.i = add nuw i64 %i.0112.i, 1
  %exitcond.not.i = icmp eq i64 %i.0112.i, %conv.i
  br i1 %exitcond.not.i, label %tfaot_pool_work.exit, label %for.body.i

tfaot_pool_work.exit:                             ; preds = %for.end.i, %if.end16
  store atomic i64 %mul, ptr %at2 release, align 8
  br label %cleanup

cleanup:                                          ; preds = %if.end14, %if.end, %while.end, %tfaot_pool_work.exit
  %cleanup.dest.slot.0 = phi i32 [ 3, %while.end ], [ 0, %tfaot_pool_work.exit ], [ 3, %if.end ], [ 1, %if.end14 ]
  switch i32 %cleanup.dest.slot.0, label %cleanup20 [
    i32 0, label %for.cond.backedge
    i32 3, label %for.cond.backedge
  ]

for.cond.backedge:                                ; preds = %cleanup, %cleanup
  br label %for.cond

cleanup20:                                        ; preds = %cleanup
  ret ptr null
}

declare hidden void @tfaot_relax() local_unnamed_addr #2

declare i32 @sem_wait(ptr noundef) local_unnamed_addr #2

declare i32 @pthread_join(ptr noundef, ptr noundef) local_unnamed_addr #2

declare i32 @sem_destroy(ptr noundef) local_unnamed_addr #2

declare i32 @sem_post(ptr noundef) local_unnamed_addr #2

declare i32 @sched_yield() local_unnamed_addr #2

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.smax.i32(i32, i32) #3

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.umin.i64(i64, i64) #3

attributes #0 = { nounwind "no-builtins" "no-trapping-math"="true" }
attributes #1 = { inlinehint nounwind "no-builtins" "no-trapping-math"="true" }
attributes #2 = { "no-builtins" "no-trapping-math"="true" }
attributes #3 = { nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }
attributes #4 = { nobuiltin nounwind "no-builtins" }
attributes #5 = { nobuiltin "no-builtins" }


