package guard_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/mpit/guard"
)

func TestMutex(t *testing.T) {
	var m guard.Mutex[int]
	*m.Lock() = 7
	waiting := make(chan int)
	go func() {
		defer m.Unlock()
		waiting <- *m.Lock()
	}()
	select {
	case <-waiting:
		t.Error("two have the lock")
	case <-time.After(time.Millisecond):
	}
	m.Unlock()
	assert.Equal(t, 7, <-waiting)
}

func TestValue(t *testing.T) {
	v := guard.New(7)
	n := v.Lock()
	assert.Equal(t, 7, *n)
	*n = 8
	assert.Nil(t, v.TryLock())
	late := make(chan time.Time)
	close(late)
	assert.Nil(t, v.LockBefore(late))

	waiting := make(chan int)
	go func() {
		n := v.LockBefore(nil)
		defer v.Unlock()
		waiting <- *n
	}()
	v.Unlock()
	assert.Equal(t, 8, <-waiting)
	*v.Lock() = 9
	v.Unlock()
	assert.Equal(t, 9, *v.TryLock())
}
