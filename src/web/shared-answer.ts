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
