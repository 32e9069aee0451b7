/** Those who ask while an answer is on its way share it: strangers may ask too, and each question costs a statement. */
export function sharedAnswer<Answer>(ask: () => Promise<Answer>): () => Promise<Answer> {
  let underWay: Promise<Answer> | undefined
  return () => {
    underWay ??= ask().finally(() => {
      underWay = undefined
    })
    return underWay
  }
}

/** An answer that is costly and may be a little old; a failure is not kept. */
export function keptAnswer<Answer>(
  ask: () => Promise<Answer>,
  ageMs: number,
  now = () => performance.now(),
): () => Promise<Answer> {
  const shared = sharedAnswer(ask)
  let kept: { readonly answer: Answer; readonly until: number } | undefined
  return async () => {
    if (kept !== undefined && kept.until > now()) return kept.answer
    const answer = await shared()
    kept = { answer, until: now() + ageMs }
    return answer
  }
}
