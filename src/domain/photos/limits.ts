/** Uploaded pictures. The maximum bytes of one picture are a setting. */
export const PHOTO_LIMITS = {
  /** Concurrent uploads in one web process, and per user. Clients send a few in parallel, not dozens. */
  maxConcurrentUploads: 32,
  /** One person cannot use all of them. */
  uploadsOfPerson: 4,
  /** Photos per user; their disk space is limited by the setting PHOTO_QUOTA. */
  photosOfPerson: 20_000,
  /** Forms read before their token is known: per web process, and per network address. */
  uploadsBeforeToken: 8,
  /** One network address cannot use all of them. */
  uploadsBeforeTokenOfAddress: 2,
  /** Waiting uploads, not read before their turn. Clients may send a whole album at once. */
  uploadsWaiting: 256,
  /** One person cannot use all of them. */
  uploadsWaitingOfPerson: 24,
  /** How many times the largest picture is read to its end, so that the client can receive the 413. */
  oversizeReadFactor: 4,
  /** Time from the last byte to the photo. After that the client gets 503 and retries. */
  madeWithinMs: 25_000,
  /** The first interval of checks for the result; each further one is longer. */
  firstPollMs: 20,
  /** The longest of these intervals. */
  maxPollMs: 250,
  /** An upload has a few short options; the longest is the description. */
  formFields: 50,
  /** The longest description in characters of four bytes. */
  fieldBytes: 6 * 1024,
  /** The longest name of a field has some twenty bytes. */
  fieldNameBytes: 100,
  /** The original of a picture of a pod that was taken over, of which missing sizes are made. It is read as a whole. */
  originalBytes: 64 * 1024 * 1024,
  /** The longest side of a JPEG. */
  sidePixels: 65_535,
  /**
   * Pixels of a picture, as workers/handlers/make-picture.ts counts them. Measured: the worst picture needs half a gigabyte in the worker.
   */
  pixels: 100_000_000,
  /** Larger pictures are processed one after the other. */
  maxPixelsForParallelProcessing: 25_000_000,
  /** Each frame of an animation is decoded for each size. */
  frames: 1_000,
  /** Time to make one size of a picture. */
  sizeSeconds: 15,
  /** An upload that is not a photo after this time never becomes one. */
  uploadAgeMs: 60 * 60_000,
  /** How often older uploads are deleted. */
  sweepIntervalMs: 10 * 60_000,
  /** Days for which the files of an account that has moved are served; then their addresses lead to the new pod. */
  movedFileDays: 90,
} as const
