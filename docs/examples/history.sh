# A job that keeps its run in the branch `benchmarks` of $REPOSITORY, one commit for each run.
git clone --quiet --branch benchmarks "$REPOSITORY" history || {
  git init --quiet --initial-branch benchmarks history
  git -C history remote add origin "$REPOSITORY"
}
cachemark run quick --client python/pymemcache --client native --runs history
git -C history add -- . ':!index.sqlite'       # an index, which is made again where it is missing
git -C history config user.name benchmarks
git -C history config user.email benchmarks@localhost
git -C history commit --quiet --message "a run of pymemcache"
tries=0
until git -C history push --quiet origin benchmarks; do       # another job was quicker
  tries=$((tries + 1))
  [ $tries -lt 20 ] || exit 1
  git -C history pull --quiet --rebase origin benchmarks
done
cachemark history python/pymemcache --runs history
